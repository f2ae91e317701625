//! A volume that was attached, and may by now be over.
//!
//! Promise: what it says of itself is what is there now: where it is mounted, who keeps it, and
//! what its front end knows.
//! Never: attaches or ends anything.

use crate::power::Power;
use crate::report::volume::VolumeStatus;
use crate::supervisor::front_end::FrontEndLife;
use crate::supervisor::front_end::known::KnownFront;
use holdfast_attach::observe::observe;
use holdfast_config::VolumeConfig;
use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::mounts::Mount;
use holdfast_machine::mounts::elsewhere::FileSystem;
use std::sync::Arc;
use std::time::Duration;

/// How long whoever mounts waits to hear what acknowledgements mean.
const SETTLING: Duration = Duration::from_secs(1);

/// Of a file system that is kept.
const UNSEEN: &str = "nobody is seen who keeps it, as by a mount namespace that no process is in, \
                      or a descriptor on its way through a socket";

/// A volume that was attached.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) volume: VolumeConfig,
    pub(crate) verdict: Verdict,
    /// What the memory may rely on when the mains fail, if its lease follows from that.
    pub(crate) power: Option<Arc<Power>>,
    /// If it is mounted.
    pub(crate) file_system: Option<FileSystem>,
    pub(crate) life: FrontEndLife,
}

impl Attached {
    pub(crate) fn is_mounted(&self) -> bool {
        self.mount().is_some()
    }

    /// What the keeper mounted, where it is now.
    pub(crate) fn mount(&self) -> Option<Mount> {
        self.file_system.as_ref().and_then(FileSystem::mount)
    }

    /// Why programs do not find it where they look for it, if they do not, and what to do.
    pub(crate) fn out_of_place(&self, name: &str) -> Option<(String, String)> {
        self.file_system.as_ref()?.out_of_place(name, self.volume.mount.as_deref()?)
    }

    /// Whether anybody may still reach its file system.
    pub(crate) fn is_connected(&self) -> bool {
        self.file_system.as_ref().is_some_and(FileSystem::is_connected)
    }

    /// Who uses its file system, for people, or that nobody is seen who keeps it.
    fn kept_by(&self, known: &KnownFront) -> Option<String> {
        let file_system = self.file_system.as_ref()?;
        match file_system.kept() {
            Some(kept) => kept.in_use(),
            // A front end that stands still has not heard of it yet.
            None => (file_system.is_connected() && known.standstills.is_empty())
                .then(|| UNSEEN.to_owned()),
        }
    }

    /// Refuses to wait for those who keep what is unmounted here: they may for ever.
    pub(crate) fn refuse_kept(&self, name: &str, known: &KnownFront) -> Outcome<()> {
        // Until it is, nobody keeps it for longer.
        let is_unmounted = !known.of.is_cut_off && !self.is_mounted();
        let who = is_unmounted.then(|| self.kept_by(known)).flatten();
        who.map_or(Ok(()), |who| Err(kept_elsewhere(name, &who)))
    }

    /// The verdict of the front end, which has seen the memory, once there is one.
    pub(crate) fn verdict(&self) -> Verdict {
        let known = self.life.known();
        let power = self.power.as_ref().filter(|_| !known.is_over());
        let armed = power.and_then(|power| power.verdict_of(&known.of));
        armed.or(known.of.verdict).unwrap_or_else(|| self.verdict.clone())
    }

    /// Waits until its front end has brought home what another had acknowledged because of the
    /// power, if that does not take long: what is said of it then is what is so.
    pub(crate) fn wait_until_settled(&self) {
        let is_settling = |it: &KnownFront| it.of.armed.is_some() && it.of.given_up.is_none();
        let _settled_or_not = self.life.wait_while(SETTLING, is_settling);
    }

    /// Whether its memory may acknowledge because of the power.
    pub(crate) fn may_be_leased(&self) -> bool {
        let known = self.life.known();
        known.of.armed.is_some() && !known.is_over()
    }

    /// What keeps its memory when the mains fail.
    fn power_source(&self, known: &KnownFront) -> PowerSource {
        let source = self.power.as_ref();
        let source = source.filter(|_| known.of.armed.is_some() && !known.is_over());
        source.map_or(PowerSource::None, |power| power.source_of(&known.of))
    }

    pub(crate) fn status(&self, name: &str) -> VolumeStatus {
        let observed = observe(&self.volume.medium());
        let known = self.life.known();
        let is_over = known.is_over();
        let power = self.power_source(&known);
        let status = VolumeStatus::new(name, &self.volume, self.verdict(), power, observed);
        let armed = self.power.as_ref().filter(|_| power == PowerSource::Armed);
        let bound = armed.map(|it| it.bound_bytes(status.drain_rate_bytes_per_s));
        let status = status.bounded_by(bound).with(known).out_of_place(|| self.out_of_place(name));
        let status = status.with_log(&self.volume, false);
        if is_over { status.mounted_by_another(&self.volume) } else { status }
    }
}

/// A volume that is not given back because somebody keeps its file system.
pub fn kept_elsewhere(name: &str, who: &str) -> Problem {
    let what = format!("unmounting volume {name}");
    let why = format!("it is unmounted here, and goes on being served: {who}");
    let remedy = format!(
        "it is given back as soon as they let it go: stop them, or cut them off with `holdfast \
         umount {name} --force`"
    );
    Problem::new(Exit::InUse, what, why, remedy)
}
