//! Which services there are: full name, handle, check value.
//!
//! Promise: a handle with its check value means the same service for as long as the region lives,
//! whichever server process answers.
//! Never: lets a request reach a service that its session did not ask for by name.

use std::sync::Arc;

use holdfast_client::protocol::Status;
use holdfast_io::Entropy;
use holdfast_io::real::RealEntropy;

use crate::served::ServedLog;
use crate::words;

/// A service, as requests name it.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) handle: u32,
    pub(crate) check: u32,
    pub(crate) log: Arc<ServedLog>,
}

impl Service {
    /// Whether a request means this service.
    pub(crate) fn admits(&self, handle: u32, check: u32) -> Result<(), Status> {
        match (handle, check) == (self.handle, self.check) {
            true => Ok(()),
            false => Err(Status::BadHandle),
        }
    }
}

/// All services of a server.
pub(crate) struct Registry(Vec<Service>);

impl Registry {
    /// Registers every log. The check value is the service's root: drawn once, kept in the region.
    pub(crate) fn new(logs: Vec<ServedLog>) -> Registry {
        let service = |(number, log): (usize, ServedLog)| {
            let check = log.root(draw);
            Service { handle: 1 + number as u32, check, log: Arc::new(log) }
        };
        Registry(logs.into_iter().enumerate().map(service).collect())
    }

    /// The service of a full name.
    pub(crate) fn find(&self, name: &str) -> Option<&Service> {
        self.0.iter().find(|service| service.log.service == name)
    }

    /// Counts a refusal that concerns no service: all show it.
    pub(crate) fn count_refused(&self) {
        self.all().for_each(|service| service.log.count(words::REFUSED));
    }

    /// Every service.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Service> {
        self.0.iter()
    }
}

fn draw() -> u32 {
    let mut bytes = [0; 4];
    RealEntropy.fill(&mut bytes);
    u32::from_le_bytes(bytes)
}
