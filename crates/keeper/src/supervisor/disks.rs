//! The front ends of disks: of those that the server has, and of those that are a front end's own.
//!
//! Promise: a disk that is to be more than a service has a front end for as long as the keeper
//! runs, or there is a reason why not; what was acknowledged is in the disk's region.
//! Never: changes a disk's region.

use crate::kept::Kept;
use crate::kept::held::Held;
use crate::kept::kept_disks::KeptDisks;
use crate::kept::settings;
use crate::memory::Memories;
use crate::orders::{Orders, Server, Task};
use crate::supervisor::copies::cut_off;
use crate::supervisor::front_end::FrontEndLife;
use crate::supervisor::front_end::known::KnownFront;
use crate::supervisor::life::known::State;
use crate::supervisor::pace::{OFTEN, Pace, SELDOM};
use crate::supervisor::progress::{PROGRESS_EVERY, Progress, RETRY_EVERY, Refuse};
use crate::supervisor::spawn::OWN_BINARY;
use crate::{attach, supervisor::upgrade};
use holdfast_config::claims::PowerSource;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Config, DiskConfig, Way};
use holdfast_machine::holders::holder;
use holdfast_machine::mounts::elsewhere::{FileSystem, KeptBy, PASSING};
use holdfast_machine::mounts::served::refuse_served;
use holdfast_machine::mounts::{Mount, disk_source, mounted_at, our_mount_at, unmount, users_text};
use holdfast_machine::service_manager::ServiceManager;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a front end may take to end that ends with its keeper.
const ENDING: Duration = Duration::from_secs(10);

/// How long one may take to let go of a disk that has ended already.
const LETTING_GO: Duration = Duration::from_secs(1);

/// The front ends by the names of their disks.
#[derive(Debug)]
pub(crate) struct DiskFronts {
    fronts: Mutex<BTreeMap<String, Entry>>,
    /// Held by who starts front ends; true once there are to be no more.
    is_closed: Mutex<bool>,
}

/// What there is of a front end that is to be.
#[derive(Debug)]
struct Entry {
    front: Outcome<Arc<DiskFront>>,
    pace: Pace,
    /// What the keeper's log has of why there is none.
    told: Option<String>,
}

/// One of them, and where its disk is mounted.
#[derive(Debug)]
struct DiskFront {
    life: FrontEndLife,
    file_system: Option<FileSystem>,
}

/// What front ends are started with.
pub(crate) struct Means<'a> {
    pub(crate) config: &'a Config,
    pub(crate) term: Option<u64>,
    pub(crate) manager: &'a Arc<ServiceManager>,
    /// What was kept of earlier ones.
    pub(crate) kept: &'a KeptDisks,
    pub(crate) memories: &'a Arc<Memories>,
    /// The server as the front end of a disk finds it.
    pub(crate) server_of: &'a dyn Fn(&str) -> Outcome<Server>,
    /// Why nothing is started, if nothing is to be.
    pub(crate) refuse: Refuse<'a>,
}

impl Means<'_> {
    fn start(&self, name: &str, server: Option<Server>) -> Outcome<Arc<DiskFront>> {
        (self.refuse)()?;
        let disk = self.config.disk(name)?;
        start_one(self, name, disk, server).map(Arc::new)
    }

    /// The server, if it has the disk. One that somebody else has is waited for that long.
    fn server(&self, name: &str, patience: Duration) -> Outcome<Option<Server>> {
        let disk = self.config.disk(name)?;
        match disk.way {
            Way::Queue => (self.server_of)(name).map(Some),
            Way::Direct => wait_until_let_go(name, disk, patience, self.refuse).map(|()| None),
        }
    }
}

impl Entry {
    /// Why there is no front end, and none comes by itself, if that is so.
    fn lack(&self) -> Option<Problem> {
        match &self.front {
            Ok(front) => {
                let seen = front.life.known();
                seen.problem.filter(|_| seen.state == State::Failed)
            }
            Err(problem) => Some(problem.clone()),
        }
    }

    /// Whether another attempt may end otherwise. A front end that met what the next one meets
    /// again has to be asked for.
    fn may_come(&self) -> bool {
        let is_over = self.front.is_ok();
        self.lack().is_some_and(|problem| !(is_over && problem.exit.stays()))
    }

    fn new(name: &str, front: Outcome<Arc<DiskFront>>) -> Entry {
        let mut entry = Entry { front: Err(not_yet(name)), pace: Pace::default(), told: None };
        entry.put(name, front);
        entry
    }

    /// The log has each reason once.
    fn put(&mut self, name: &str, front: Outcome<Arc<DiskFront>>) {
        let why = front.as_ref().err().map(ToString::to_string);
        match &why {
            Some(why) if self.told.as_ref() != Some(why) => tracing::error!("{why}"),
            None if self.told.is_some() => tracing::info!("disk {name} has a front end now"),
            _ => {}
        }
        (self.front, self.told) = (front, why);
    }
}

impl DiskFronts {
    /// None at all.
    pub(crate) const fn none() -> DiskFronts {
        DiskFronts { fronts: Mutex::new(BTreeMap::new()), is_closed: Mutex::new(false) }
    }

    /// Starts one for each disk that wants one; those of the server's disks as its clients.
    pub(crate) fn start(means: &Means<'_>) -> DiskFronts {
        let wanted = means.config.disks.iter().filter(|(_, disk)| disk.has_front_end());
        let patience = if means.manager.keeps() { ENDING } else { LETTING_GO };
        let start = |name: &String| {
            let server = means.server(name, patience);
            let front = server.and_then(|server| means.start(name, server));
            (name.clone(), Entry::new(name, front))
        };
        let fronts = wanted.map(|(name, _)| start(name)).collect();
        DiskFronts { fronts: Mutex::new(fronts), is_closed: Mutex::new(false) }
    }

    /// Starts those that are lacking and can be by now. Until then is told why they cannot.
    pub(crate) fn start_lacking(&self, means: &Means<'_>) {
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<String> = self.lock().keys().cloned().collect();
        let lacking = |name: &str| self.lock().get(name).is_some_and(Entry::may_come);
        for name in names.iter().filter(|name| !*is_closed && lacking(name)) {
            if let Err(problem) = self.start_one_lacking(name, means, false) {
                self.lock().entry(name.clone()).and_modify(|it| it.put(name, Err(problem)));
            }
        }
    }

    /// Starts one that is lacking, if it is due or wanted now.
    fn start_one_lacking(&self, name: &str, means: &Means<'_>, is_wanted: bool) -> Outcome<()> {
        let server = means.server(name, Duration::ZERO)?;
        let mut fronts = self.lock();
        let Some(entry) = fronts.get_mut(name) else { return Ok(()) };
        let now = Instant::now();
        if !is_wanted && !entry.pace.is_due(now) {
            return Ok(());
        }
        // One that began and could not serve costs a process each time.
        let longest = if entry.front.is_ok() { SELDOM } else { OFTEN };
        entry.pace.attempt(now, longest);
        // What the one before it had, such as its sockets, it gives back when it is gone.
        let lack = entry.lack().unwrap_or_else(|| not_yet(name));
        let gone = std::mem::replace(&mut entry.front, Err(lack));
        drop(fronts);
        gone.ok().and_then(Arc::into_inner).into_iter().for_each(|it| it.life.join());
        let front = means.start(name, server)?;
        self.lock().entry(name.to_owned()).and_modify(|it| it.put(name, Ok(front)));
        Ok(())
    }

    /// Returns when those that have their disk themselves serve it, or do not: true if one does,
    /// the first reason if there are some and none of them does.
    pub(crate) fn wait_until_served(&self, config: &Config, refuse: Refuse<'_>) -> Outcome<bool> {
        let alone = |name: &String| config.disks.get(name).is_some_and(|it| it.way == Way::Direct);
        let fronts = self.fronts().into_iter().filter(|(name, _)| alone(name));
        let served: Vec<Outcome<()>> = fronts.map(|(_, front)| serves(&front, refuse)).collect();
        match served.iter().any(Result::is_ok) {
            true => Ok(true),
            false => served.into_iter().collect::<Outcome<()>>().map(|()| false),
        }
    }

    /// What is known of each, or why there is none.
    pub(crate) fn known(&self) -> BTreeMap<String, Outcome<KnownFront>> {
        let fronts = self.fronts().into_iter();
        fronts.map(|(name, front)| (name, front.map(|it| it.life.known()))).collect()
    }

    /// Whether there is one of this disk, or a reason why not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    /// Replaces the front end of a disk; returns when the new one serves. One that is lacking is
    /// started first.
    pub(crate) fn upgrade(
        &self,
        (name, means): (&str, &Means<'_>),
        binary: &Path,
        say: Progress<'_>,
    ) -> Outcome<String> {
        let was_lacking = self.have(name, means)?;
        let whose = format!("disk {name}");
        let front = self.fronts().remove(name).unwrap_or_else(|| Err(not_yet(name)));
        if was_lacking {
            serves(&front, means.refuse)?;
        }
        let front = front?;
        front.life.upgrade(&whose, binary, say)?;
        let pid = front.life.known().pid.unwrap_or_default();
        let binary = binary.display();
        Ok(format!("the front end of {name} is replaced: {binary} serves as process {pid}"))
    }

    /// Starts the front end of a disk if it is lacking; true if it was.
    fn have(&self, name: &str, means: &Means<'_>) -> Outcome<bool> {
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let lack = self.lock().get(name).and_then(Entry::lack);
        let started = match lack {
            Some(problem) if *is_closed => Err(problem),
            Some(_) => self.start_one_lacking(name, means, true),
            None => return Ok(false),
        };
        if let Err(problem) = &started {
            self.lock().entry(name.to_owned()).and_modify(|it| it.put(name, Err(problem.clone())));
        }
        started.map(|()| true)
    }

    /// Ends all of them, each when no program uses its mount any more, or when that no longer
    /// matters. The disks stay.
    pub(crate) fn stop(&self, is_forced: &dyn Fn() -> bool) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let fronts =
            self.fronts().into_iter().filter_map(|(name, front)| Some((name, front.ok()?)));
        let fronts: Vec<_> = fronts.collect();
        for (name, front) in &fronts {
            let mount = || front.file_system.as_ref().and_then(FileSystem::mount);
            unmount_disk(name, &mount, is_forced);
            front.life.unmounted();
        }
        fronts.iter().for_each(|(name, front)| front.wait_for_end(name, is_forced));
    }

    fn fronts(&self) -> BTreeMap<String, Outcome<Arc<DiskFront>>> {
        self.lock().iter().map(|(name, entry)| (name.clone(), entry.front.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.fronts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFront {
    /// Waits for the end of what is unmounted here, and for those who keep it elsewhere.
    fn wait_for_end(&self, name: &str, is_forced: &dyn Fn() -> bool) {
        let (begun, mut spoken) = (Instant::now(), false);
        loop {
            let seen = self.life.wait_while(PROGRESS_EVERY, |it| !it.is_over());
            if seen.is_over() {
                return;
            }
            let is_awaited = !seen.of.is_cut_off && begun.elapsed() >= PASSING;
            let Some(kept) = self.file_system.as_ref().filter(|_| is_awaited) else { continue };
            cut_off(&format!("disk {name}"), kept, &self.life);
            let Some(who) = kept.kept().and_then(KeptBy::in_use) else { continue };
            if is_forced() {
                self.life.cut_off(true);
            } else if !std::mem::replace(&mut spoken, true) {
                tracing::warn!("disk {name} is unmounted here: {who}; a second signal cuts it off");
            }
        }
    }
}

/// Waits until a front end serves, or is given up.
fn serves(front: &Outcome<Arc<DiskFront>>, refuse: Refuse<'_>) -> Outcome<()> {
    let front = &front.as_ref().map_err(Clone::clone)?.life;
    loop {
        let seen = front.wait_while(PROGRESS_EVERY, KnownFront::is_to_serve);
        if !seen.is_to_serve() {
            return seen.problem.map_or(Ok(()), Err);
        }
        refuse()?;
    }
}

/// Refuses a disk that somebody else has, once he was given that time to end.
fn wait_until_let_go(
    name: &str,
    disk: &DiskConfig,
    patience: Duration,
    refuse: Refuse<'_>,
) -> Outcome<()> {
    let (medium, begun) = (disk.medium(), Instant::now());
    while let Some((why, remedy)) = holder(&medium) {
        refuse()?;
        if begun.elapsed() >= patience {
            let what = format!("attaching disk {name}");
            let remedy = format!(
                "{remedy}; nothing is lost, and the disk is served as soon as nobody has it"
            );
            return Err(Problem::new(Exit::InUse, what, why, remedy));
        }
        std::thread::sleep(RETRY_EVERY / 10);
    }
    Ok(())
}

/// While a front end is being started.
fn not_yet(name: &str) -> Problem {
    let what = format!("starting the front end of disk {name}");
    Problem::new(Exit::Failed, what, "it has none yet", "see `holdfast status`")
}

/// Takes a disk's mount away as soon as nobody uses it, or is to be waited for.
fn unmount_disk(name: &str, mount: &dyn Fn() -> Option<Mount>, is_forced: &dyn Fn() -> bool) {
    let mut spoken = false;
    while let Some(mount) = mount() {
        match unmount(&mount, is_forced()) {
            Err(problem) if problem.exit == Exit::InUse => {
                if !std::mem::replace(&mut spoken, true) {
                    tracing::warn!("disk {name}: {problem}; a second signal cuts them off");
                }
                std::thread::sleep(RETRY_EVERY);
            }
            ended => return ended.unwrap_or_else(|problem| tracing::error!("{problem}")),
        }
    }
}

fn start_one(
    means: &Means<'_>,
    name: &str,
    disk: &DiskConfig,
    server: Option<Server>,
) -> Outcome<DiskFront> {
    let Means { term, manager, kept: kept_disks, memories, .. } = *means;
    let binary = upgrade::open_binary(Path::new(OWN_BINARY))?;
    let whose = format!("disk {name}");
    attach::check_driver(&whose, disk.ublk)?;
    let (back, was) = kept_disks.held(name).unzip();
    let was_served = back.is_some();
    let (listeners, handover) = attach::listen(&whose, disk.sockets(), manager)?;
    let fuse = match (back, disk.mount.as_deref()) {
        (None, Some(point)) => Some(mount(&whose, &disk_source(name), point)?),
        (fuse, _) => fuse,
    };
    let fuse = fuse.map(Arc::new);
    let mounted = fuse.as_ref().zip(disk.mount.as_deref());
    let source = disk_source(name);
    let file_system = mounted.and_then(|(it, at)| FileSystem::behind(it, at, &source));
    let settings = was.flatten().or_else(|| fuse.as_ref().and_then(|_| settings::written(disk)));
    let (home, log, kept) = (None, None, None);
    let held = Held { home, log, settings, fuse, listeners, handover, kept, was_served };
    let held = Held { kept: Some(Kept::new(manager, &whose, &held)), ..held };
    let orders = Orders {
        name: name.to_owned(),
        volume: None,
        disk: Some(disk.clone()),
        power: PowerSource::None,
        task: Task::Serve,
        resume: false,
        ends_with_keeper: manager.keeps() && (disk.mount.is_some() || disk.way == Way::Direct),
        term,
        server,
        sockets: Vec::new(),
        handover: None,
        pulse_fd: None,
        lease_fd: None,
    };
    let life = FrontEndLife::start(orders, held, (binary, memories, None), unmount_unserved)?;
    kept_disks.taken(name);
    Ok(DiskFront { life, file_system })
}

/// Mounts a disk. One that an earlier keeper mounted is mounted anew if no program uses it.
fn mount(whose: &str, source: &str, point: &Path) -> Outcome<OwnedFd> {
    let what = format!("attaching {whose}");
    if let Some(left) = our_mount_at(point, source) {
        refuse_served(&what, &left, None)?;
        if unmount(&left, false).is_ok() {
            tracing::warn!("{} was left by another keeper, and is mounted anew", point.display());
        }
    }
    let Some(found) = mounted_at(point) else {
        return holdfast_machine::mounts::mount(whose, source, point);
    };
    let (at, users) = (point.display(), users_text(point));
    let why = match found.source == source {
        true => format!("it is still mounted at {at}, for {users}"),
        false => format!("the mount point {at} is in use by {}", found.whose()),
    };
    let remedy = format!(
        "stop who uses it and `umount {at}`: it is served as soon as nobody has that place"
    );
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// Takes the mount of a disk away that no front end ever served, and the block device.
fn unmount_unserved(orders: &Orders) {
    attach::unmount_unserved(orders);
    if let Some(point) = orders.disk.as_ref().and_then(|disk| disk.mount.as_deref()) {
        let mount = || our_mount_at(point, &disk_source(&orders.name));
        unmount_disk(&orders.name, &mount, &|| true);
    }
}
