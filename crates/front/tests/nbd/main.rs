//! The NBD front end as its clients see it: as bytes, over sockets, and through clients that others
//! wrote. Needs no privileges.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod answers;
mod certificates;
mod clients;
mod fuzzed;
mod handed_on;
mod memory;
mod messages;
mod misbehaviour;
mod negotiation;
mod pure;
mod random;
mod requests;
mod served;
mod strangers;
mod tls;
mod tls_records;
mod waiting;
