//! Pages made again from their records, one at a time.
//!
//! Promise: what is given out is what the records lead to, or an error that names the page.
//! Never: writes a page to its device.

pub(crate) mod compare;
pub(crate) mod fetch;
pub(crate) mod repairs;
pub(crate) mod replay;
pub(crate) mod view;
