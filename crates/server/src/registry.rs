//! Which services there are: full name, handle, check value.
//!
//! Promise: a handle with its check value means the same service for as long as the region lives,
//! whichever server process answers.
//! Never: lets a request reach a service that its session did not ask for by name.

use std::sync::Arc;

use holdfast_io::Entropy;
use holdfast_io::real::RealEntropy;
use holdfast_peers::Complaints;

use crate::served::ServedLog;
use crate::service::{Service, ServiceSpec};

/// All services of a server.
pub(crate) struct Registry(Vec<Arc<Service>>);

impl Registry {
    /// Registers every log, then the others.
    pub(crate) fn new(
        logs: Vec<ServedLog>,
        others: Vec<ServiceSpec>,
        complaints: &Arc<Complaints>,
    ) -> Registry {
        let mut handles = 1..;
        let mut handle = || handles.next().expect("there are more numbers than services");
        let logs = logs.into_iter().map(|log| Service::of_log(handle(), log, complaints, draw));
        let mut services: Vec<_> = logs.map(Arc::new).collect();
        let others = others.into_iter().map(|spec| Service::new(handle(), spec, complaints, draw));
        services.extend(others.map(Arc::new));
        Registry(services)
    }

    /// The service of a full name.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Service>> {
        self.all().find(|service| service.name == name)
    }

    /// Every service.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.0.iter()
    }

    /// Every service that is a log.
    pub(crate) fn logs(&self) -> impl Iterator<Item = &Arc<ServedLog>> {
        self.all().filter_map(|service| service.log())
    }
}

fn draw() -> u32 {
    let mut bytes = [0; 4];
    RealEntropy.fill(&mut bytes);
    u32::from_le_bytes(bytes)
}
