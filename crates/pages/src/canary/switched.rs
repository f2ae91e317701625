//! Tests: invariants hold unless the test that runs in this thread says otherwise.
//!
//! Promise: what is switched off or hooked is so for this thread alone, and until its guard is
//! dropped.
//! Never: is compiled into a product.

use std::cell::{Cell, RefCell};

use super::{Invariant, Point};

/// Called at points.
type Hook = Box<dyn FnMut(Point)>;

thread_local! {
    static OFF: Cell<u32> = const { Cell::new(0) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Whether an invariant holds for this thread.
#[must_use]
pub fn holds(invariant: Invariant) -> bool {
    OFF.get() & bit(invariant) == 0
}

/// Runs this thread's hook, if it has one. What the hook itself passes runs none.
pub fn at(point: Point) {
    let Some(mut hook) = HOOK.take() else { return };
    hook(point);
    HOOK.set(Some(hook));
}

/// Lets an invariant hold no more, for this thread, until the guard is dropped.
#[must_use]
pub fn switch_off(invariant: Invariant) -> Off {
    let before = OFF.get();
    OFF.set(before | bit(invariant));
    Off { before }
}

/// Runs this at each point that this thread passes, until the guard is dropped.
#[must_use]
pub fn hook(hook: impl FnMut(Point) + 'static) -> Hooked {
    HOOK.set(Some(Box::new(hook)));
    Hooked(())
}

/// While this lives an invariant is switched off.
#[derive(Debug)]
pub struct Off {
    before: u32,
}

/// While this lives a hook runs.
#[derive(Debug)]
pub struct Hooked(());

impl Drop for Off {
    fn drop(&mut self) {
        OFF.set(self.before);
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        HOOK.set(None);
    }
}

fn bit(invariant: Invariant) -> u32 {
    1 << invariant as u32
}
