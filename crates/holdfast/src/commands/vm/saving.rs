//! The state of a guest, on its way out of QEMU.
//!
//! Promise: a guest that cannot be saved is refused before it stands still.
//! Never: ends a guest.

use crate::vm::{Qmp, QmpError, Snapshot};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long QEMU may take for its state, which is small.
pub(super) const STATE_PATIENCE: Duration = Duration::from_secs(60);

/// With it, memory that is a shared file stays out of the state.
pub(super) const IGNORE_SHARED: &str = "x-ignore-shared";

/// Has the guest stand still, and its state in a file.
pub(super) fn save_state(kept: &Snapshot, qmp: &mut Qmp) -> Result<(), QmpError> {
    kept.make_state()?;
    qmp.ask("stop", &json!({}))?;
    ignore_shared(qmp)?;
    let to = format!("exec:cat > {}", quoted(&kept.state()));
    qmp.ask("migrate", &json!({ "uri": to }))?;
    qmp.wait_for_migration(STATE_PATIENCE)
}

pub(super) fn ignore_shared(qmp: &mut Qmp) -> Result<(), QmpError> {
    let capability = json!({ "capability": IGNORE_SHARED, "state": true });
    qmp.ask("migrate-set-capabilities", &json!({ "capabilities": [capability] })).map(drop)
}

/// The files that are the guest's memory. Memory that is no shared file would be in no state.
pub(super) fn memory(qmp: &mut Qmp) -> Result<Vec<PathBuf>, QmpError> {
    let backends = qmp.ask("query-memdev", &json!({}))?;
    let backends = backends.as_array().cloned().unwrap_or_default();
    let path = |backend: &Value, qmp: &mut Qmp| {
        let id = backend["id"].as_str()?;
        let property = json!({ "path": format!("/objects/{id}"), "property": "mem-path" });
        let path = qmp.ask("qom-get", &property).ok()?;
        (backend["share"] == true).then(|| path.as_str().map(PathBuf::from))?
    };
    let paths: Option<Vec<PathBuf>> = backends.iter().map(|it| path(it, qmp)).collect();
    let why = "the guest's memory is no shared file; see `holdfast vm boot --help`";
    paths.filter(|paths| !paths.is_empty()).ok_or_else(|| QmpError::Refused(why.into()))
}

/// Whether QEMU saves such a machine at all; the guest is not to stand still for a refusal.
pub(super) fn can_be_saved(qmp: &mut Qmp) -> Result<(), QmpError> {
    let told = qmp.ask("query-migrate", &json!({}))?;
    let Some(why) = told["blocked-reasons"][0].as_str() else { return Ok(()) };
    let remedy = match why.contains("vhost") {
        true => "; give it its disks by NBD or as files, instead of vhost-user",
        false => "",
    };
    let why = why.trim_end_matches('.');
    Err(QmpError::Refused(format!("it cannot save this machine ({why}){remedy}")))
}

/// A path for the shell that QEMU starts.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
