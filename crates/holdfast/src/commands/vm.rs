//! `holdfast vm boot` and `holdfast vm snapshot`.
//!
//! Promise: a guest runs when `boot` has said how it began, and a snapshot that it began with is
//! gone by then. A `snapshot` that fails leaves the guest running and no snapshot.
//! Never: adds to what the machine is; QEMU's arguments are the user's, and three more.

mod saving;
mod served;

use self::saving::{STATE_PATIENCE, can_be_saved, ignore_shared, memory, quoted, save_state};
use crate::cli::vm::VmCommand;
use crate::output::Output;
use crate::vm::{Qmp, QmpError, Snapshot, Taken};
use holdfast_config::Address;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::private;
use holdfast_keeper::taken;
use holdfast_machine::configuration;
use serde_json::json;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

/// How long QEMU may take to open its control socket.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_millis(5);

/// What to do where something has the name of the control socket.
const ELSEWHERE: &str = "nothing was changed; end that machine, or move away what is no socket; \
                         or name another folder";

/// Runs the subcommand.
pub(crate) fn vm(config: &Path, command: VmCommand, output: Output) -> Outcome<ExitCode> {
    match command {
        VmCommand::Boot { folder, from: None, command } => boot(&folder, &command, fitting),
        VmCommand::Boot { folder, from: Some(from), command } => {
            let config = configuration::load(config)?;
            boot(&folder, &command, |folder, command| {
                served::bring(&config, &from, folder, command)
            })
        }
        VmCommand::Snapshot { folder, to: None } => snapshot(&folder, output),
        VmCommand::Snapshot { folder, to: Some(to) } => {
            served::snapshot(&configuration::load(config)?, &folder, &to, output)
        }
    }
}

/// Starts the guest and waits for its end. `find` says whether there is a snapshot of it.
fn boot(
    folder: &Path,
    command: &[String],
    find: impl FnOnce(&Snapshot, &[String]) -> io::Result<bool>,
) -> Outcome<ExitCode> {
    let what = || format!("starting the machine in {}", folder.display());
    let failed = |error: &dyn std::fmt::Display| {
        Problem::new(Exit::Failed, what(), error, "see what QEMU said; the snapshot is as it was")
    };
    let kept = Snapshot::at(folder).map_err(|error| failed(&error))?;
    private::remove_socket(&kept.socket()).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            let why = taken::why(&Address::Unix(kept.socket()), &error);
            Problem::new(Exit::InUse, what(), why, ELSEWHERE)
        }
        _ => failed(&error),
    })?;
    let taken = find(&kept, command).map_err(|error| failed(&error))?;
    kept.note_command(command).map_err(|error| failed(&error))?;
    let began = Instant::now();
    let mut qemu = start(&kept, command, taken).map_err(|error| failed(&error))?;
    let ran = match taken {
        true => resume(&kept, &mut qemu),
        false => kept.forget().map_err(QmpError::Io),
    };
    if let Err(error) = ran {
        let _may_have_ended = qemu.kill();
        let _reaped = qemu.wait();
        return Err(failed(&error));
    }
    match taken {
        true => tracing::info!(after = ?began.elapsed(), "the guest goes on where it was stopped"),
        false => tracing::info!("the guest boots"),
    }
    let status = qemu.wait().map_err(|error| failed(&error))?;
    let signalled = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signalled).unwrap_or(i32::from(Exit::Failed as u8));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// True if there is a snapshot for this command; says why if there is one that is of no use.
fn fitting(kept: &Snapshot, command: &[String]) -> io::Result<bool> {
    let Some(taken) = kept.taken()? else { return Ok(false) };
    let refusal = taken.refusal(command);
    refusal.iter().for_each(|why| tracing::warn!(why, "the snapshot is of no use"));
    Ok(refusal.is_none())
}

/// Starts QEMU with a control socket, and waiting for a state if there is one.
fn start(kept: &Snapshot, command: &[String], waiting: bool) -> io::Result<Child> {
    let mut qemu = Command::new(&command[0]);
    qemu.args(&command[1..]);
    qemu.arg("-qmp").arg(format!("unix:{},server=on,wait=off", kept.socket().display()));
    if waiting {
        qemu.args(["-S", "-incoming", "defer"]);
    }
    qemu.spawn()
}

/// Gives QEMU the state and lets the guest go on.
fn resume(kept: &Snapshot, qemu: &mut Child) -> Result<(), QmpError> {
    let mut qmp = connect(&kept.socket(), qemu)?;
    ignore_shared(&mut qmp)?;
    let from = format!("exec:cat {}", quoted(&kept.state()));
    qmp.ask("migrate-incoming", &json!({ "uri": from }))?;
    qmp.wait_for_migration(STATE_PATIENCE)?;
    kept.forget()?;
    qmp.ask("cont", &json!({})).map(drop)
}

/// Connects as soon as QEMU has its socket.
fn connect(socket: &Path, qemu: &mut Child) -> Result<Qmp, QmpError> {
    let give_up = Instant::now() + START_PATIENCE;
    loop {
        match Qmp::connect(socket) {
            Ok(qmp) => return Ok(qmp),
            Err(error) if Instant::now() > give_up => return Err(error),
            Err(_) => {}
        }
        if let Some(status) = qemu.try_wait()? {
            return Err(QmpError::Refused(format!("it ended with {status}")));
        }
        std::thread::sleep(TRY_EVERY);
    }
}

/// Stops the guest, keeps its state and ends QEMU.
fn snapshot(folder: &Path, output: Output) -> Outcome<ExitCode> {
    let failed = |error: &dyn std::fmt::Display| {
        let what = format!("taking a snapshot of the machine in {}", folder.display());
        Problem::new(Exit::Failed, what, error, "there is no snapshot; mend this and repeat it")
    };
    let kept = Snapshot::at(folder).map_err(|error| failed(&error))?;
    let mut qmp = Qmp::connect(&kept.socket()).map_err(|error| failed(&error))?;
    let command = kept.command().map_err(|error| failed(&error))?;
    let memory = memory(&mut qmp).map_err(|error| failed(&error))?;
    can_be_saved(&mut qmp).map_err(|error| failed(&error))?;
    let began = Instant::now();
    if let Err(error) = save(&kept, &mut qmp, &Taken::new(memory, command)) {
        let _no_worse = kept.forget();
        let _may_be_gone = qmp.ask("cont", &json!({}));
        return Err(failed(&error));
    }
    let ended = qmp.ask("quit", &json!({})).and_then(|_| qmp.wait_for_end());
    ended.map_err(|error| failed(&error))?;
    let (took_ms, folder) = (began.elapsed().as_millis(), folder.display());
    output.done(&format!("the guest stands still in {folder}, after {took_ms} ms"));
    Ok(ExitCode::from(Exit::Ok))
}

/// Has the guest stand still, and a snapshot of it in its folder.
fn save(kept: &Snapshot, qmp: &mut Qmp, taken: &Taken) -> Result<(), QmpError> {
    save_state(kept, qmp)?;
    Ok(kept.keep(taken)?)
}
