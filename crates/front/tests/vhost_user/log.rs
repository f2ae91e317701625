//! What the front end writes to its log.

use std::io;
use std::sync::{Mutex, OnceLock};

static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Writer;

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        TEXT.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// From here on the log of this process is kept.
pub(crate) fn keep() {
    static KEPT: OnceLock<()> = OnceLock::new();
    KEPT.get_or_init(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| Writer);
        tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    });
}

/// How often the log has `text`.
pub(crate) fn count(text: &str) -> usize {
    String::from_utf8_lossy(&TEXT.lock().unwrap()).matches(text).count()
}
