//! `holdfast umount`.
//!
//! Promise: with a keeper or without one, after success the home is complete and ordinary and
//! nothing waits in memory.
//! Never: gives up a home half done: whatever failed, the next attempt goes on from there.

use crate::commands::apart;
use crate::commands::mount::answer_of;
use crate::output::{Output, Progress};
use holdfast_attach::bond::is_complete;
use holdfast_attach::observe::observe;
use holdfast_client::protocol::{DISK_PREFIX, VOLUME_PREFIX};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::{Config, VolumeConfig, Way};
use holdfast_io::process;
use holdfast_io::real::RealFiles;
use holdfast_keeper::control::{Answer, Command, ask, is_there};
use holdfast_keeper::keeper::{NOT_ATTACHED, kept_elsewhere};
use holdfast_keeper::listeners::refuse_connected;
use holdfast_keeper::pulse::why_stopped;
use holdfast_keeper::whose::{front_end_of, refuse_kept_by_another};
use holdfast_machine::configuration;
use holdfast_machine::holders::{is_mapped_by, signal};
use holdfast_machine::lock::{keeper_with, server_with};
use holdfast_machine::mounts::elsewhere::{KeptBy, PASSING, copies_text, kept};
use holdfast_machine::mounts::served::{connections_of, refuse_served};
use holdfast_machine::mounts::{Mount, all_mounts, leads_to, our_mount_of, unmount};
use holdfast_memory::{Medium, Region};
use holdfast_process::front::give_back;
use holdfast_server::words;
use rustix::process::Signal;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long the keeper may take to have another server, for what nobody else has any more.
const TAKING_UP: Duration = Duration::from_secs(30);

/// Unmounts a volume, by the keeper if one runs.
pub(crate) fn umount(config: &Path, name: &str, force: bool, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    if is_there(&config.keeper.socket) {
        match by_the_keeper(&config, name, force, output) {
            // It has ended meanwhile: what it has begun is brought to its end without it.
            Err(problem) if problem.exit == Exit::NotRunning => {}
            ended => return ended,
        }
    }
    let volume = config.volume(name)?;
    let mut progress = Progress::new();
    let left = Left::of(name, volume)?;
    left.end_use(force)?;
    left.wait_for_server(&config, force, &mut progress)?;
    give_back(name, volume, config.power_of(volume), &mut |text| progress.say(text))?;
    drop(progress);
    let home = volume.home.display();
    let copies = match left.copies.get() {
        0 => String::new(),
        processes => format!("; {}", copies_text(processes)),
    };
    let given_back = format!("{name} is given back: {home} is complete (no keeper was running)");
    output.done(&(given_back + &copies));
    Ok(())
}

/// Has the keeper give the volume back. One whose front end outlived an earlier keeper is none of
/// this one's yet: it takes the volume up when that front end has ended.
fn by_the_keeper(config: &Config, name: &str, force: bool, output: Output) -> Outcome<()> {
    // Afterwards nobody knows.
    let note = apart::note(config, name).unwrap_or_default();
    let umount = || {
        let asked = answer_of(config, Command::Umount { name: name.to_owned(), force });
        asked.map(|answer| match answer {
            Answer::Text(text) => output.done(&(text + &note)),
            Answer::Status(report) => output.result(&report, &report.text()),
        })
    };
    let asked = umount();
    let Some(problem) = asked.as_ref().err().filter(|problem| problem.why == NOT_ATTACHED) else {
        return asked;
    };
    // What the keeper has it may unmount, whatever the configuration says by now.
    let volume = config.volume(name)?;
    match has_outlived(name, volume) {
        true => {
            let left = Left::of(name, volume)?;
            left.end_use(force)?;
            let mut progress = Progress::new();
            left.wait_for_front_end(force, &mut progress)?;
            left.wait_for_server(config, force, &mut progress)?;
            have_taken_up(config, name, volume, &mut progress)?;
            drop(progress);
            umount()
        }
        false if is_home(volume) => {
            let home = volume.home.display();
            output.done(&format!("{name} was given back already: {home} is complete"));
            Ok(())
        }
        false => Err(problem.clone()),
    }
}

/// Has the keeper take up what nobody has any more. Its server sees that a moment later, and the
/// next one takes up the log.
fn have_taken_up(
    config: &Config,
    name: &str,
    volume: &VolumeConfig,
    progress: &mut Progress,
) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        let mount = Command::Mount { name: name.to_owned() };
        match ask(config, mount, &mut |text| progress.say(text)) {
            Err(problem)
                if volume.way == Way::Queue
                    && problem.exit == Exit::InUse
                    && begun.elapsed() < TAKING_UP =>
            {
                progress.say(&format!("{name}: the keeper takes it up ({})", problem.why));
                std::thread::sleep(LOOK_EVERY);
            }
            asked => return asked.map(drop),
        }
    }
}

fn is_home(volume: &VolumeConfig) -> bool {
    RealFiles::open(&volume.log).is_ok_and(|log| is_complete(&log))
}

/// Whether something of the volume is left that no keeper looks after, or a server that goes on has
/// what its home lacks.
fn has_outlived(name: &str, volume: &VolumeConfig) -> bool {
    let is_mounted = our_mount_of(volume).is_some_and(|mount| mount.source == name);
    let is_served = || server_of(volume).is_some_and(|(pid, _)| why_stopped(pid).is_none());
    is_mounted || front_end_of(volume).is_some() || (!is_home(volume) && is_served())
}

/// [`server_of`], where the keeper has not started it, and so neither asks it for anything nor ends
/// it.
fn outlived_server_of(config: &Config, volume: &VolumeConfig) -> Option<(u32, String)> {
    let keeper = keeper_with(&config.keeper.socket);
    server_of(volume).filter(|(pid, _)| keeper.is_none() || process::parent(*pid) != keeper)
}

/// The process that has log and memory, found as [`front_end_of`], and what it has to apply.
fn server_of(volume: &VolumeConfig) -> Option<(u32, String)> {
    match observe(&volume.medium()) {
        Ok(seen) => Some((seen.server_pid?, rounded(seen.unapplied_bytes()))),
        Err(_) => Some((server_with(&volume.log)?, "what its memory holds".to_owned())),
    }
}

/// Whose clients this server has, by the names of their services.
fn users_of(config: &Config, pid: u32) -> Vec<String> {
    let logs = config.services().into_iter().map(|(of, log)| (of, log.memory.medium()));
    let disks = config.served_disks();
    let disks = disks.map(|(name, disk)| (format!("{DISK_PREFIX}{name}"), disk.medium()));
    let has_clients = |medium: &Medium| {
        let Ok(seen) = Region::observe(medium) else { return false };
        seen.word(words::CLIENTS) > 0 && seen.server_pid() == pid && is_mapped_by(medium, pid)
    };
    logs.chain(disks).filter(|(_, medium)| has_clients(medium)).map(|(of, _)| of).collect()
}

/// Why a process does not do what it is waited for, if it is plain that it cannot.
fn held_text(pid: u32) -> String {
    why_stopped(pid).map(|why| format!("; it cannot: {why}")).unwrap_or_default()
}

fn check_source(name: &str, mount: &Mount) -> Outcome<()> {
    let source = mount.whose();
    match mount.source == name {
        true => Ok(()),
        false => Err(Problem::new(
            Exit::InUse,
            format!("unmounting volume {name}"),
            format!("volume {source} is mounted at {}", mount.point.display()),
            format!("`holdfast umount {source}`, or correct the configuration"),
        )),
    }
}

/// What is left of a volume that no keeper looks after.
struct Left<'a> {
    name: &'a str,
    volume: &'a VolumeConfig,
    mount: Option<Mount>,
    /// The device of its file system, which may be mounted elsewhere only.
    device: Option<String>,
    /// Where it is mounted, or was.
    point: Option<PathBuf>,
    /// So many processes had nothing but a copy of its mount, and were cut off.
    copies: Cell<usize>,
}

impl Left<'_> {
    fn of<'a>(name: &'a str, volume: &'a VolumeConfig) -> Outcome<Left<'a>> {
        let front_end = front_end_of(volume);
        refuse_kept_by_another(&format!("unmounting volume {name}"), front_end)?;
        let served = front_end.and_then(|pid| connections_of(pid).pop());
        // Whoever can rename a folder on the way has moved it.
        let is_it = |mount: &Mount| mount.is_ours() && Some(&mount.device) == served.as_ref();
        let moved = || all_mounts().into_iter().find(is_it);
        let mount = our_mount_of(volume).or_else(moved);
        if let Some(mount) = &mount {
            check_source(name, mount)?;
            refuse_served(&format!("unmounting volume {name}"), mount, front_end)?;
        }
        let device = mount.as_ref().map(|mount| mount.device.clone()).or(served);
        let at = mount.as_ref().map(|mount| mount.point.clone());
        let point = at.or_else(|| volume.mount.as_deref().map(leads_to));
        Ok(Left { name, volume, mount, device, point, copies: Cell::new(0) })
    }

    /// Takes the volume away from its users. Where nothing was mounted the front end has to be
    /// told.
    fn end_use(&self, force: bool) -> Outcome<()> {
        if !force {
            refuse_connected(&format!("unmounting volume {}", self.name), self.volume)?;
        }
        if let Some(mount) = &self.mount {
            return unmount(mount, force);
        }
        if self.volume.mount.is_none() {
            self.signal_front_end(Signal::INT);
        } else if force {
            // Somebody keeps it elsewhere, and hears errors from now on.
            self.signal_front_end(Signal::KILL);
        }
        Ok(())
    }

    fn signal_front_end(&self, with: Signal) {
        let front_end = || front_end_of(self.volume);
        let _may_have_ended = front_end().map(|pid| signal(pid, with, || front_end() == Some(pid)));
    }

    fn wait_for_front_end(&self, force: bool, progress: &mut Progress) -> Outcome<()> {
        let begun = Instant::now();
        while let Some(pid) = front_end_of(self.volume) {
            let held = held_text(pid);
            progress.say(&format!("{}: its front end brings it home{held}", self.name));
            self.refuse_kept(begun, force, progress)?;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// A front end whose keeper is gone learns from the kernel that its mount is, detaches, and
    /// ends; a server then has no client any more, and ends too.
    fn wait_for_server(
        &self,
        config: &Config,
        force: bool,
        progress: &mut Progress,
    ) -> Outcome<()> {
        let (begun, mut spoken) = (Instant::now(), Instant::now());
        while let Some((pid, left)) = outlived_server_of(config, self.volume) {
            if spoken.elapsed() >= Duration::from_secs(1) {
                spoken = Instant::now();
                let held = held_text(pid);
                let who = format!("{}: process {pid}", self.name);
                progress.say(&format!("{who} has {left} to apply to the home{held}"));
                self.refuse_kept(begun, force, progress)?;
                self.refuse_shared(config, pid)?;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Refuses to wait for a server that serves others too: it has this log until they have gone.
    fn refuse_shared(&self, config: &Config, pid: u32) -> Outcome<()> {
        let own = format!("{VOLUME_PREFIX}{}", self.name);
        let mut others = users_of(config, pid);
        others.retain(|service| *service != own);
        let is_over = front_end_of(self.volume).is_none();
        let Some(first) = others.first().filter(|_| is_over) else { return Ok(()) };
        let (name, others_text) = (self.name, others.join(", "));
        let first = match first.strip_prefix(VOLUME_PREFIX) {
            Some(other) => format!("`holdfast umount {other}` first"),
            None => format!("end the clients of {first} first"),
        };
        Err(Problem::new(
            Exit::InUse,
            format!("giving volume {name} back"),
            format!(
                "it is unmounted, and the server, process {pid}, keeps its log because it serves \
                 {others_text} too"
            ),
            format!("nothing is lost; {first}, then `holdfast umount {name}` again"),
        ))
    }

    /// Refuses to wait any longer for those who use what is unmounted here. Those who have nothing
    /// but a copy of the mount are cut off.
    fn refuse_kept(&self, begun: Instant, force: bool, progress: &mut Progress) -> Outcome<()> {
        // Until its connection has ended, no other file system has the number.
        let lasts = |device: &&str| {
            front_end_of(self.volume)
                .is_some_and(|pid| connections_of(pid).iter().any(|it| it == device))
        };
        let waited = !force && begun.elapsed() >= PASSING;
        let device = self.device.as_deref().filter(|_| waited).filter(lasts);
        let point = self.point.as_deref();
        match device.zip(point).and_then(|(device, point)| kept(device, point)) {
            Some(KeptBy::InUse(who)) => Err(kept_elsewhere(self.name, &who)),
            Some(KeptBy::Copied(processes)) => {
                self.copies.set(processes);
                progress.say(&format!("{}: {}", self.name, copies_text(processes)));
                self.signal_front_end(Signal::KILL);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
