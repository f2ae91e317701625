//! A volume that is served, and is mounted in another mount namespace than that of this command.
//!
//! Promise: nobody is told that a volume is served who finds a bare directory where it should be.
//! Never: looks at what is there, but at the table of mounts alone.

use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_keeper::control::{Answer, Command, ask};
use holdfast_keeper::report::{StatusReport, VolumeStatus};
use holdfast_machine::lock::keeper_with;
use holdfast_machine::mounts::apart::is_mounted_apart;
use holdfast_machine::mounts::our_mount_at;

/// What is said of a volume of which nothing is seen here.
struct Apart {
    where_it_is: String,
    remedy: String,
}

impl Apart {
    fn why(&self) -> String {
        format!("it is mounted {}", self.where_it_is)
    }
}

/// The same for every volume of a status.
pub(super) fn tell(config: &Config, report: &mut StatusReport) {
    let Some(keeper) = keeper_of(config, report) else { return };
    let volumes = std::mem::take(&mut report.volumes).into_iter().map(|volume| {
        let apart = of(&volume, keeper).map(|it| (it.why(), it.remedy));
        volume.out_of_place(|| apart)
    });
    report.volumes = volumes.collect();
}

/// Refuses to call a volume served that is not seen here. `what` is what was asked for.
pub(super) fn refuse(
    config: &Config,
    report: &StatusReport,
    (what, name): (&str, &str),
) -> Outcome<()> {
    let apart = in_report(config, report, name);
    let refused = |it: Apart| Problem::new(Exit::InUse, what, it.why(), it.remedy);
    apart.map_or(Ok(()), |apart| Err(refused(apart)))
}

/// [`refuse`], of what the keeper says now.
pub(super) fn refuse_now(config: &Config, (what, name): (&str, &str)) -> Outcome<()> {
    let report = report_of_unseen(config, name);
    report.map_or(Ok(()), |report| refuse(config, &report, (what, name)))
}

/// What whoever unmounts such a volume has to know.
pub(super) fn note(config: &Config, name: &str) -> Option<String> {
    let report = report_of_unseen(config, name)?;
    let where_it_is = in_report(config, &report, name)?.where_it_is;
    Some(format!(
        "; it was mounted {where_it_is}, so what programs wrote there is in that directory, not in \
         the home"
    ))
}

/// What the keeper says, if it answers, and the volume is not seen where it should be.
fn report_of_unseen(config: &Config, name: &str) -> Option<StatusReport> {
    let point = config.volume(name).ok()?.mount.as_deref()?;
    let asked =
        our_mount_at(point, name).is_none().then(|| ask(config, Command::Status, &mut |_| {}));
    match asked {
        Some(Ok(Answer::Status(report))) => Some(*report),
        _ => None,
    }
}

fn in_report(config: &Config, report: &StatusReport, name: &str) -> Option<Apart> {
    let volume = report.volumes.iter().find(|volume| volume.name == name)?;
    of(volume, keeper_of(config, report)?)
}

/// The keeper's process as it is called here, if it can be found here.
fn keeper_of(config: &Config, report: &StatusReport) -> Option<u32> {
    let keeper = report.keeper.as_ref()?;
    Some(keeper_with(&config.keeper.socket).unwrap_or(keeper.pid))
}

fn of(volume: &VolumeStatus, keeper: u32) -> Option<Apart> {
    let point = volume.mount.as_deref().filter(|_| volume.is_serving())?;
    is_mounted_apart(point, &volume.name, keeper).then(|| Apart {
        where_it_is: format!(
            "in another mount namespace, that of the keeper (process {keeper}), and not seen \
             at {} here",
            point.display()
        ),
        remedy: format!(
            "start the keeper where its users are: in a unit without PrivateMounts=, PrivateTmp=, \
             ProtectSystem= and the like; or run them where it is: `nsenter -t {keeper} -m`"
        ),
    })
}
