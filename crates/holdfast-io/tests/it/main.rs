//! The border to the machine, as its users see it.

mod real;
