//! Memory that its owner may take away while it is mapped here.
//!
//! Promise: a touch of guarded memory that has no page behind it any more, because its file was
//! made shorter or the machine has no room, does not end the process: the touch goes to zeros, and
//! whoever asks afterwards hears that the memory is lost. A touch is before the question in the
//! same thread, and zeros that another thread sees are behind the answer.
//! Never: changes what becomes of a touch of memory that is not guarded: that ends the process, as
//! it always did.
//!
//! The kernel says it by SIGBUS, to the thread that touched. The handler finds the guard by the
//! address, notes the loss, and puts zeros in place of all that was mapped there.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Once};

use vm_memory::MmapRegion;

/// Mappings that can be guarded at a time: those of two memories of sixteen guests.
const GUARDS_MAX: usize = 2048;

/// All guards. A handler of signals may take no lock, so this has a place for each.
static GUARDS: [Slot; GUARDS_MAX] = [const { Slot::new() }; GUARDS_MAX];

struct Slot {
    is_taken: AtomicBool,
    start: AtomicUsize,
    /// 0 while nothing is guarded.
    bytes: AtomicUsize,
    is_lost: AtomicBool,
}

/// What sees to it that a mapping may be lost. It has the mapping, so it ends before that does:
/// what is mapped at the same address afterwards is not its.
pub(crate) struct Guard {
    slot: &'static Slot,
    _mapped: Arc<MmapRegion>,
}

impl Guard {
    /// Guards a mapping that can be read and written. `None`: too many are guarded.
    pub(crate) fn over(mapped: Arc<MmapRegion>) -> Option<Guard> {
        listen();
        let is_free =
            |slot: &&Slot| slot.is_taken.compare_exchange(false, true, SeqCst, SeqCst).is_ok();
        let slot = GUARDS.iter().find(is_free)?;
        slot.is_lost.store(false, SeqCst);
        slot.start.store(mapped.as_ptr().expose_provenance(), SeqCst);
        slot.bytes.store(mapped.size(), SeqCst);
        Some(Guard { slot, _mapped: mapped })
    }

    /// Whether a touch found nothing. What was read since may be zeros, and what was written is
    /// gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.slot.is_lost.load(SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.slot.bytes.store(0, SeqCst);
        self.slot.is_taken.store(false, SeqCst);
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            is_taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Puts zeros where the address is, if it is guarded here.
    fn rescue(&self, address: usize) -> bool {
        let (start, bytes) = (self.start.load(SeqCst), self.bytes.load(SeqCst));
        if !(start..start.saturating_add(bytes)).contains(&address) {
            return false;
        }
        // Before the zeros are there, so that nobody sees them and not this.
        self.is_lost.store(true, SeqCst);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let at: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is a mapping that the guard has, and the thread that touched it keeps
        // both alive. Nobody has a reference to its bytes: they are reached as volatile memory,
        // which anybody may change at any time.
        let mapped = unsafe { libc::mmap(at, bytes, protection, flags, -1, 0) };
        mapped != libc::MAP_FAILED
    }
}

/// Has the kernel's word heard, from the first guard on.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let action = libc::sigaction {
            sa_sigaction: on_bus_error as *const () as usize,
            // SAFETY: a set of signals is bits, and none set is an empty one.
            sa_mask: unsafe { MaybeUninit::zeroed().assume_init() },
            sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK,
            sa_restorer: None,
        };
        // SAFETY: the handler only does what a handler may, and stays for good.
        let outcome = unsafe { libc::sigaction(libc::SIGBUS, &action, null_mut()) };
        assert_eq!(outcome, 0, "SIGBUS can be handled");
    });
}

extern "C" fn on_bus_error(_: c_int, told: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives the thread's own place, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: a handler with SA_SIGINFO is told where the touch was.
    let address = unsafe { (*told).si_addr() }.addr();
    if !GUARDS.iter().any(|slot| slot.rescue(address)) {
        // What touched goes on, touches again, and ends the process as if nobody listened.
        // SAFETY: the default of a signal is always allowed.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}
