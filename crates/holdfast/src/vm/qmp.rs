//! QEMU's control socket.
//!
//! Promise: an answer is the one to what was asked; events in between are passed over. Every wait
//! has an end.
//! Never: knows what an order is for.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Far longer than QEMU takes for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often QEMU is asked how far a migration is.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QmpError {
    /// The socket failed; what QEMU did is not known.
    #[error("QEMU's control socket: {0}")]
    Io(#[from] io::Error),
    /// QEMU said something that is no answer.
    #[error("QEMU said {0:?}")]
    Unintelligible(String),
    /// QEMU refused.
    #[error("QEMU refused: {0}")]
    Refused(String),
}

/// A connection. QEMU has one at a time.
#[derive(Debug)]
pub(crate) struct Qmp {
    orders: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Qmp {
    /// Connects and agrees on nothing but the protocol itself.
    pub(crate) fn connect(socket: &Path) -> Result<Qmp, QmpError> {
        let orders = UnixStream::connect(socket)?;
        orders.set_read_timeout(Some(PATIENCE))?;
        orders.set_write_timeout(Some(PATIENCE))?;
        let answers = BufReader::new(orders.try_clone()?);
        let mut qmp = Qmp { orders, answers };
        let _greeting = qmp.hear()?;
        qmp.ask("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// Gives an order and returns its result.
    pub(crate) fn ask(&mut self, order: &str, arguments: &Value) -> Result<Value, QmpError> {
        let line = json!({ "execute": order, "arguments": arguments });
        self.orders.write_all(format!("{line}\n").as_bytes())?;
        loop {
            let mut heard = self.hear()?;
            if let Some(result) = heard.get_mut("return") {
                return Ok(result.take());
            }
            if let Some(error) = heard.get("error") {
                let why = error["desc"].as_str().unwrap_or("no reason was given");
                return Err(QmpError::Refused(format!("{order}: {why}")));
            }
        }
    }

    /// Waits for the end of the migration that goes on, outgoing or incoming.
    pub(crate) fn wait_for_migration(&mut self, patience: Duration) -> Result<(), QmpError> {
        let give_up = Instant::now() + patience;
        loop {
            let told = self.ask("query-migrate", &json!({}))?;
            match told["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => {
                    let why = told["error-desc"].as_str().unwrap_or("it says no more");
                    return Err(QmpError::Refused(format!("the migration failed: {why}")));
                }
                _ if Instant::now() > give_up => {
                    return Err(QmpError::Refused(format!("the migration does not end: {told}")));
                }
                _ => std::thread::sleep(ASK_EVERY),
            }
        }
    }

    /// Waits until QEMU has ended.
    pub(crate) fn wait_for_end(mut self) -> Result<(), QmpError> {
        loop {
            match self.hear() {
                Ok(_event) => {}
                Err(QmpError::Io(error)) if is_end(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn hear(&mut self) -> Result<Value, QmpError> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        serde_json::from_str(&line).map_err(|_| QmpError::Unintelligible(line))
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}
