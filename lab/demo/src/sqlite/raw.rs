//! SQLite's C interface, from the library that the machine has.
//!
//! Promise: a statement lives no longer than its connection, a connection no longer than the
//! library; every result code is looked at.
//! Never: shares a connection between threads: none of these types can be sent to another.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};

/// The name that Debian's `libsqlite3-0` installs.
const NAME: &CStr = c"libsqlite3.so.0";

const OK: c_int = 0;
const ROW: c_int = 100;
const DONE: c_int = 101;
/// Read, write, create.
const OPEN_FLAGS: c_int = 0x2 | 0x4;

/// What SQLite, or the loader, said of a failure.
#[derive(Debug, thiserror::Error)]
#[error("SQLite: {0}")]
pub(super) struct SqliteError(pub(super) String);

/// A `sqlite3`.
#[repr(C)]
struct RawConnection {
    _opaque: [u8; 0],
}

/// A `sqlite3_stmt`.
#[repr(C)]
struct RawStatement {
    _opaque: [u8; 0],
}

type Open =
    unsafe extern "C" fn(*const c_char, *mut *mut RawConnection, c_int, *const c_char) -> c_int;
type Prepare = unsafe extern "C" fn(
    *mut RawConnection,
    *const c_char,
    c_int,
    *mut *mut RawStatement,
    *mut *const c_char,
) -> c_int;

/// The loaded library. It is never unloaded.
pub(super) struct Library {
    open: Open,
    close: unsafe extern "C" fn(*mut RawConnection) -> c_int,
    message: unsafe extern "C" fn(*mut RawConnection) -> *const c_char,
    prepare: Prepare,
    bind: unsafe extern "C" fn(*mut RawStatement, c_int, i64) -> c_int,
    step: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    reset: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    text: unsafe extern "C" fn(*mut RawStatement, c_int) -> *const c_char,
    finalize: unsafe extern "C" fn(*mut RawStatement) -> c_int,
}

impl Library {
    /// Loads the machine's SQLite.
    pub(super) fn load() -> Result<Library, SqliteError> {
        // SAFETY: the name ends with a zero byte, and the constructors of a system library may run
        // at any time.
        let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle).ok_or_else(|| {
            let name = NAME.to_string_lossy();
            SqliteError(format!("{name} is missing; apt-get install libsqlite3-0"))
        })?;
        // SAFETY: each type is the signature that sqlite3.h gives the function of that name, which
        // no release of SQLite 3 has changed.
        unsafe {
            Ok(Library {
                open: symbol(handle, c"sqlite3_open_v2")?,
                close: symbol(handle, c"sqlite3_close")?,
                message: symbol(handle, c"sqlite3_errmsg")?,
                prepare: symbol(handle, c"sqlite3_prepare_v2")?,
                bind: symbol(handle, c"sqlite3_bind_int64")?,
                step: symbol(handle, c"sqlite3_step")?,
                reset: symbol(handle, c"sqlite3_reset")?,
                text: symbol(handle, c"sqlite3_column_text")?,
                finalize: symbol(handle, c"sqlite3_finalize")?,
            })
        }
    }

    /// Opens a database, which is made if it is missing.
    pub(super) fn open(&self, path: &Path) -> Result<Connection<'_>, SqliteError> {
        let name = c_string(&path.display().to_string())?;
        let mut raw = null_mut();
        // SAFETY: the name ends with a zero byte, and the handle is written before the call
        // returns; without a name SQLite takes its default file system.
        let code = unsafe { (self.open)(name.as_ptr(), &raw mut raw, OPEN_FLAGS, null()) };
        let connection = Connection { library: self, raw };
        connection.check(code).map(|()| connection)
    }
}

/// Finds a function in a library.
///
/// # Safety
/// `F` must be the type of the function of that name.
unsafe fn symbol<F: Copy>(handle: NonNull<c_void>, name: &CStr) -> Result<F, SqliteError> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a function's address") };
    // SAFETY: the handle came from `dlopen` and was not closed; the name ends with a zero byte.
    let found = unsafe { libc::dlsym(handle.as_ptr(), name.as_ptr()) };
    if found.is_null() {
        return Err(SqliteError(format!("it has no {}", name.to_string_lossy())));
    }
    // SAFETY: the caller names the function's type, and an address has its size.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

fn c_string(text: &str) -> Result<CString, SqliteError> {
    CString::new(text).map_err(|_| SqliteError(format!("a zero byte in {text:?}")))
}

/// An open database. Dropping it closes it.
pub(super) struct Connection<'a> {
    library: &'a Library,
    raw: *mut RawConnection,
}

impl Connection<'_> {
    fn check(&self, code: c_int) -> Result<(), SqliteError> {
        if matches!(code, OK | ROW | DONE) {
            return Ok(());
        }
        // SAFETY: SQLite takes any handle that `open` gave, and null; the text it returns ends with
        // a zero byte and stays until the next call on the handle.
        let text = unsafe { CStr::from_ptr((self.library.message)(self.raw)) };
        Err(SqliteError(format!("{} (code {code})", text.to_string_lossy())))
    }

    /// Compiles one statement.
    pub(super) fn prepare(&self, sql: &str) -> Result<Statement<'_>, SqliteError> {
        let text = c_string(sql)?;
        let mut raw = null_mut();
        // SAFETY: the handle is open, the text ends with a zero byte, and the end of the statement
        // is not asked for.
        let code = unsafe {
            (self.library.prepare)(self.raw, text.as_ptr(), -1, &raw mut raw, null_mut())
        };
        let statement = Statement { connection: self, raw };
        self.check(code).map(|()| statement)
    }

    /// Runs one statement; the first column of each row it returns.
    pub(super) fn query(&self, sql: &str) -> Result<Vec<String>, SqliteError> {
        let mut statement = self.prepare(sql)?;
        let mut rows = Vec::new();
        while statement.step()? {
            rows.push(statement.text());
        }
        Ok(rows)
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: every statement borrows the connection, so none is left, and nobody uses the
        // handle again. Null is allowed.
        let _nothing_can_be_done = unsafe { (self.library.close)(self.raw) };
    }
}

/// A compiled statement.
pub(super) struct Statement<'a> {
    connection: &'a Connection<'a>,
    raw: *mut RawStatement,
}

impl Statement<'_> {
    /// Gives the parameter `?number` a value.
    pub(super) fn bind(&mut self, number: c_int, value: i64) -> Result<(), SqliteError> {
        // SAFETY: the statement is alive; a number that it does not have is answered with a code.
        let code = unsafe { (self.connection.library.bind)(self.raw, number, value) };
        self.connection.check(code)
    }

    /// Runs on: true at a row, false at the end. A commit is acknowledged when this returns false.
    pub(super) fn step(&mut self) -> Result<bool, SqliteError> {
        // SAFETY: the statement is alive.
        let code = unsafe { (self.connection.library.step)(self.raw) };
        self.connection.check(code).map(|()| code == ROW)
    }

    /// Makes the statement ready to run again.
    pub(super) fn reset(&mut self) -> Result<(), SqliteError> {
        // SAFETY: the statement is alive.
        let code = unsafe { (self.connection.library.reset)(self.raw) };
        self.connection.check(code)
    }

    /// The first column of this row, as text; empty for NULL.
    fn text(&self) -> String {
        // SAFETY: the statement is alive, and stands at a row: `query` asks after `step` said so.
        let text = unsafe { (self.connection.library.text)(self.raw, 0) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: SQLite ends the text with a zero byte and keeps it until the next step.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses the statement again. Null is allowed. The code repeats the last
        // step's.
        let _known_already = unsafe { (self.connection.library.finalize)(self.raw) };
    }
}
