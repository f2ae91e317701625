//! A PostgreSQL cluster that lies wholly in a place.
//!
//! Promise: clusters differ in nothing but where they lie; one at a time runs, and each starts with
//! a checkpoint behind it. Full page images stay on everywhere.
//! Never: touches a cluster that was there before.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use holdfast_bench_common::Failure;
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::output;

use crate::places::{Kind, Places};

const VERSIONS: &str = "/usr/lib/postgresql";
const HOME_OF_POSTGRES: &str = "/var/lib/postgresql";
const SETTINGS: &str = "
listen_addresses = ''
shared_buffers = 32MB
max_wal_size = 4GB
checkpoint_timeout = 1h
autovacuum = off
jit = off
";
const CLIENTS: &str = "8";

/// How much is done.
pub struct Effort {
    scale: u32,
    /// Of the rows that are copied into a database of their own.
    copied_scale: u32,
    seconds: u32,
}

impl Effort {
    /// As the figures are quoted.
    pub const WHOLE: Effort = Effort { scale: 30, copied_scale: 10, seconds: 10 };
    /// Enough to see that it works.
    pub const QUICK: Effort = Effort { scale: 3, copied_scale: 1, seconds: 2 };
}

/// The database that rows are copied into.
const COPIED: &str = "copied";

/// One cluster in each place.
pub struct Databases {
    programs: PathBuf,
    owner: (u32, u32),
    sockets: PathBuf,
}

impl Databases {
    /// Fills them.
    ///
    /// # Errors
    /// Without PostgreSQL.
    pub fn make(places: &Places, effort: &Effort) -> Result<Databases, Failure> {
        let user = fs::metadata(HOME_OF_POSTGRES)?;
        let (owner, sockets) = ((user.uid(), user.gid()), places.root().join("sockets"));
        let databases = Databases { programs: newest_programs()?, owner, sockets };
        databases.own(&databases.sockets)?;
        for kind in Kind::ALL {
            output::progress(&format!("filling a database on {}", kind.name()));
            let data = data(places, kind);
            databases.own(&data)?;
            let initdb =
                ["-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", "--no-sync"];
            databases.run(databases.command("initdb").args(initdb).arg("-D").arg(&data))?;
            let path = data.join("postgresql.conf");
            let settings = fs::read_to_string(&path)? + SETTINGS;
            fs::write(&path, settings)?;
            databases.start(&data)?;
            let scale = effort.scale.to_string();
            databases.run(databases.command("pgbench").args(["-i", "-q", "-s", &scale]))?;
            databases.run(databases.command("createdb").arg(COPIED))?;
            databases.stop(&data)?;
        }
        Ok(databases)
    }

    /// Measures every cluster once.
    ///
    /// # Errors
    /// At the first thing that cannot be done.
    pub fn round(
        &mut self,
        places: &Places,
        round: usize,
        effort: &Effort,
        ledger: &mut Ledger,
    ) -> Result<(), Failure> {
        let mut order = Kind::ALL;
        order.rotate_left(round % Kind::ALL.len());
        for kind in order {
            let data = data(places, kind);
            places.settle(kind)?;
            self.start(&data)?;
            self.load(&["-S"], 1)?;
            for (name, words) in [("pg_select", &["-S"][..]), ("pg_tpcb", &[])] {
                let tps = self.load(words, effort.seconds)?;
                output::progress(&format!("{name} on {}: {tps:.0} tps", kind.name()));
                ledger.higher(format!("files.{}.{name}_tps", kind.name()), "tps", tps);
            }
            let began = Instant::now();
            self.copy(effort.copied_scale)?;
            let copied_s = began.elapsed().as_secs_f64();
            output::progress(&format!("pg_copy on {}: {copied_s:.1} s", kind.name()));
            ledger.lower(format!("files.{}.pg_copy_s", kind.name()), "s", copied_s);
            self.stop(&data)?;
        }
        Ok(())
    }

    /// Tables dropped, made and filled with COPY, without keys.
    fn copy(&self, scale: u32) -> Result<(), Failure> {
        let mut pgbench = self.command("pgbench");
        pgbench.args(["-i", "-I", "dtg", "-q", "-s", &scale.to_string(), COPIED]);
        self.run(&mut pgbench).map(drop)
    }

    fn load(&self, words: &[&str], seconds: u32) -> Result<f64, Failure> {
        let mut pgbench = self.command("pgbench");
        pgbench.args(["-n", "-M", "prepared", "-j", "2", "-c", CLIENTS]).args(words);
        let said = self.run(pgbench.args(["-T", &seconds.to_string()]))?;
        let tps = said.lines().find_map(|line| line.strip_prefix("tps = "));
        let tps = tps.and_then(|rest| rest.split(' ').next()).and_then(|tps| tps.parse().ok());
        tps.ok_or_else(|| format!("pgbench said no rate: {said}").into())
    }

    fn start(&self, data: &Path) -> Result<(), Failure> {
        let options = format!("-k {}", self.sockets.display());
        let mut start = self.command("pg_ctl");
        start.args(["-w", "-t", "120", "-o", &options, "-l"]).arg(self.sockets.join("log"));
        self.run(start.arg("-D").arg(data).arg("start")).map(drop)
    }

    fn stop(&self, data: &Path) -> Result<(), Failure> {
        let mut stop = self.command("pg_ctl");
        self.run(stop.args(["-w", "-t", "120", "-m", "fast", "-D"]).arg(data).arg("stop")).map(drop)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.uid(self.owner.0).gid(self.owner.1).current_dir(&self.sockets);
        command.env("PGHOST", &self.sockets).env("PGUSER", "postgres");
        command.env("PGDATABASE", "postgres").env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// What a server leaves running must not hold what it says open.
    fn run(&self, command: &mut Command) -> Result<String, Failure> {
        let said = self.sockets.join("said");
        let file = fs::File::create(&said)?;
        let done = command.stdout(file.try_clone()?).stderr(file).status()?;
        let said = fs::read_to_string(said)?;
        if done.success() { Ok(said) } else { Err(format!("{command:?}: {said}").into()) }
    }

    fn own(&self, path: &Path) -> Result<(), Failure> {
        fs::create_dir_all(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        Ok(chown(path, Some(self.owner.0), Some(self.owner.1))?)
    }
}

fn data(places: &Places, kind: Kind) -> PathBuf {
    places.path(kind).join("data")
}

fn newest_programs() -> Result<PathBuf, Failure> {
    let versions = fs::read_dir(VERSIONS)?.flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let newest = versions.max().ok_or("no PostgreSQL: apt-get install postgresql")?;
    Ok(Path::new(VERSIONS).join(newest.to_string()).join("bin"))
}
