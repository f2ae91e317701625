//! Clients of NBD who speak TLS, while the process that they speak it with ends.

use crate::certificates::{Authority, Signed};
use crate::disk_users::{Event, KILL, WATCH, Writers, bring_about, check_counts};
use crate::fixture::{NAME, wait_until};
use crate::nbd::Served;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A volume whose clients need a certificate, and the files of one who has it.
struct Secret {
    served: Served,
    files: TempDir,
}

impl Secret {
    fn served() -> Secret {
        let mut served = Served::new();
        let authority = Authority::new("authority");
        let Signed(certificate, key) = authority.sign("server");
        let texts = [("cert.pem", certificate), ("key.pem", key)];
        let texts = texts.into_iter().chain([("ca.pem", authority.certificate.clone())]);
        let paths: Vec<_> = texts
            .map(|(name, text)| {
                let path = served.fixture.path(name);
                fs::write(&path, text).unwrap();
                path
            })
            .collect();
        let [certificate, key, clients] = &paths[..] else { unreachable!("three files") };
        let tls = format!(
            "nbd_tls = {{ certificate = {certificate:?}, key = {key:?}, clients = {clients:?} }}"
        );
        let nbd = served.nbd();
        let text = fs::read_to_string(served.fixture.config()).unwrap();
        served.fixture.configure(&text.replace(&nbd, &format!("{nbd}\n{tls}")));
        served.fixture.watch_for(WATCH);
        served.fixture.serve();
        let files = authority.client_files(&authority);
        Secret { served, files }
    }

    fn unix(&self) -> String {
        let (socket, files) = (self.served.socket(), self.files.path().display());
        format!("nbds+unix:///{NAME}?socket={}&tls-certificates={files}", socket.display())
    }

    fn tcp(&self) -> String {
        let (port, files) = (self.served.port, self.files.path().display());
        format!("nbds://127.0.0.1:{port}/{NAME}?tls-certificates={files}")
    }

    /// How a connection ends at which nothing is under way, and what another finds there.
    fn end_of_connection(&self, uri: &str, event: Event) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/nbd_end.py");
        // Debian's Python: the module is not in any other.
        let mut client = Command::new("/usr/bin/python3");
        let mut client = client.args([script, uri]).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(client.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "written\n");
        // Before an upgrade status says what it will cost.
        let told = || self.served.fixture.status()["mortal_connections"].as_u64() >= Some(1);
        wait_until(told, || self.served.fixture.status().to_string());
        bring_about(&self.served.fixture, event);
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert!(client.wait().unwrap().success(), "{rest}");
        rest
    }
}

#[test]
fn an_upgrade_ends_connections_by_tls_in_order_and_a_death_does_not() {
    let secret = Secret::served();
    for uri in [secret.unix(), secret.tcp()] {
        assert_eq!(secret.end_of_connection(&uri, Event::Upgrade), "closed\nkept\n");
        // The other end is the canary: clients can tell.
        assert_eq!(secret.end_of_connection(&uri, KILL), "dead\nkept\n");
    }
}

#[test]
fn clients_by_tls_connect_again_at_an_upgrade_and_lose_nothing_that_was_acknowledged() {
    let secret = Secret::served();
    let fixture = &secret.served.fixture;
    let writers = Writers::at(&secret.unix(), &secret.tcp());
    let events = [Event::Upgrade, Event::Upgrade, KILL, Event::Upgrade];
    for event in events {
        std::thread::sleep(std::time::Duration::from_millis(50));
        bring_about(fixture, event);
    }
    let seen = writers.finish().unwrap();
    assert!(seen.answered > events.len() as u64, "no load");
    assert!(seen.lost >= events.len() as u64, "{} connections were lost", seen.lost);
    check_counts(fixture, &events);
    fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    fixture.assert_given_back();
}

#[test]
fn status_says_that_tls_is_required() {
    let secret = Secret::served();
    let fixture = &secret.served.fixture;
    assert_eq!(fixture.status()["nbd_tls"], "required-with-certificate");
    let said = fixture.holdfast(&["status"]).succeeded().out;
    assert!(said.contains("nbd_tls      required of every client, with a certificate"), "{said}");
}
