//! `memory_limit`: what CPython's allocators may take, and what has to work all the same.
//!
//! Hooked are the raw allocator, which every block of more than 512 bytes comes from, and the arenas that smaller blocks
//! are cut from; so the common case, a small block from an arena that is there, costs nothing. The first refusal opens a
//! reserve, so that an `except MemoryError` has room to run (PROTOCOL.md §10). Only code of the engine is refused
//! anything: what the worker itself does for the protocol runs [`unlimited`], because half an answer is none.
//! This bounds honest code exactly; against code that took the process over there is the address-space limit of
//! `confine`.

#![expect(unsafe_code, reason = "allocator hooks are C functions and pass blocks on to malloc(3)")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use pyo3::ffi;

/// Bytes held.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// How many of them the engine may hold; 0 before INIT and without a limit.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
/// Bytes past the limit for who handles the error.
static RESERVE: AtomicUsize = AtomicUsize::new(0);
/// Was something refused, and the reserve opened?
static OPEN: AtomicBool = AtomicBool::new(false);
/// Does the engine run, so that the limit holds?
static LIMITED: AtomicBool = AtomicBool::new(false);

const RESERVE_SHARE: usize = 32;
const RESERVE_MIN: usize = 64 << 10;
const RESERVE_MAX: usize = 1 << 20;

/// Puts the hooks in place. Before CPython starts: a block has to be freed by who made it.
pub(crate) fn hook() {
    let mut raw = ffi::PyMemAllocatorEx {
        ctx: std::ptr::null_mut(),
        malloc: Some(malloc),
        calloc: Some(calloc),
        realloc: Some(realloc),
        free: Some(free),
    };
    // SAFETY: the struct is copied; its functions keep the contract of malloc(3), for which they stand.
    unsafe { ffi::PyMem_SetAllocator(ffi::PyMemAllocatorDomain::PYMEM_DOMAIN_RAW, &raw mut raw) };
    let mut arenas = ffi::PyObjectArenaAllocator::default();
    // SAFETY: fills the struct.
    unsafe { ffi::PyObject_GetArenaAllocator(&raw mut arenas) };
    arenas.alloc = Some(arena);
    arenas.free = Some(drop_arena);
    // SAFETY: the struct is copied; its functions hand out private mappings, as CPython's own do.
    unsafe { ffi::PyObject_SetArenaAllocator(&raw mut arenas) };
}

/// From now on the engine may hold `bytes` more than it does; 0 is no limit.
pub(crate) fn limit(bytes: usize) {
    if bytes > 0 {
        LIMIT.store(HELD.load(Relaxed).saturating_add(bytes), Relaxed);
        RESERVE.store((bytes / RESERVE_SHARE).clamp(RESERVE_MIN, RESERVE_MAX), Relaxed);
    }
}

/// Bytes held now.
pub(crate) fn held() -> usize {
    HELD.load(Relaxed)
}

/// Did something done [`unlimited`], since `before` bytes were held, put the engine past its limit? What is small passes,
/// so that an engine at its limit can still be told to let go.
pub(crate) fn is_over(before: usize) -> bool {
    let (limit, reserve, held) = (LIMIT.load(Relaxed), RESERVE.load(Relaxed), HELD.load(Relaxed));
    limit > 0 && held > limit && held.saturating_sub(before) > reserve
}

/// Runs engine code: the limit holds.
pub(crate) fn limited<T>(run: impl FnOnce() -> T) -> T {
    with(true, run)
}

/// Does work of the worker's own: nothing is refused, and no garbage is collected meanwhile, so no engine code runs.
pub(crate) fn unlimited<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: PyGC_Disable has no argument; this thread holds the interpreter, as all callers do.
    let collects = unsafe { ffi::PyGC_Disable() } == 1;
    let done = with(false, run);
    if collects {
        // SAFETY: as above.
        unsafe { ffi::PyGC_Enable() };
    }
    done
}

fn with<T>(limited: bool, run: impl FnOnce() -> T) -> T {
    let before = LIMITED.swap(limited, Relaxed);
    let done = run();
    LIMITED.store(before, Relaxed);
    done
}

/// May `bytes` more be held?
fn allows(bytes: usize) -> bool {
    let limit = LIMIT.load(Relaxed);
    if limit == 0 || !LIMITED.load(Relaxed) {
        return true;
    }
    let (reserve, would) = (RESERVE.load(Relaxed), HELD.load(Relaxed).saturating_add(bytes));
    if OPEN.load(Relaxed) {
        if HELD.load(Relaxed).saturating_add(reserve) < limit {
            OPEN.store(false, Relaxed);
        } else {
            return would <= limit.saturating_add(reserve);
        }
    }
    if would > limit {
        OPEN.store(true, Relaxed);
        return false;
    }
    true
}

fn usable(block: *mut c_void) -> usize {
    // SAFETY: malloc_usable_size(3) takes null or a block of malloc, which is all that these hooks hand out.
    unsafe { libc::malloc_usable_size(block) }
}

/// Counts a new block; null is a failure of malloc.
fn counted(block: *mut c_void) -> *mut c_void {
    HELD.fetch_add(usable(block), Relaxed);
    block
}

extern "C" fn malloc(_: *mut c_void, size: usize) -> *mut c_void {
    if !allows(size) {
        return std::ptr::null_mut();
    }
    // CPython wants a block even for nothing.
    // SAFETY: malloc(3) takes a number.
    counted(unsafe { libc::malloc(size.max(1)) })
}

extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let (count, size) = if count == 0 || size == 0 { (1, 1) } else { (count, size) };
    if !count.checked_mul(size).is_some_and(allows) {
        return std::ptr::null_mut();
    }
    // SAFETY: calloc(3) takes two numbers, whose product fits.
    counted(unsafe { libc::calloc(count, size) })
}

extern "C" fn realloc(_: *mut c_void, block: *mut c_void, size: usize) -> *mut c_void {
    let before = usable(block);
    if size > before && !allows(size - before) {
        return std::ptr::null_mut();
    }
    // SAFETY: realloc(3) takes null or a block of malloc; on failure the old block stays as it is.
    let moved = unsafe { libc::realloc(block, size.max(1)) };
    if !moved.is_null() {
        HELD.fetch_sub(before, Relaxed);
        counted(moved);
    }
    moved
}

extern "C" fn free(_: *mut c_void, block: *mut c_void) {
    HELD.fetch_sub(usable(block), Relaxed);
    // SAFETY: free(3) takes null or a block of malloc that nobody uses any more.
    unsafe { libc::free(block) };
}

extern "C" fn arena(_: *mut c_void, size: usize) -> *mut c_void {
    // Never past the limit, and no refusal: without an arena CPython asks for its small blocks one by one. An arena from
    // the reserve, or the reserve opened for want of one, would leave nothing to who handles the error.
    let (limit, would) = (LIMIT.load(Relaxed), HELD.load(Relaxed).saturating_add(size));
    if limit > 0 && would > limit {
        return std::ptr::null_mut();
    }
    let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: mmap(2) of fresh anonymous memory.
    let arena = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, kind, -1, 0) };
    if arena == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    HELD.fetch_add(size, Relaxed);
    arena
}

extern "C" fn drop_arena(_: *mut c_void, arena: *mut c_void, size: usize) {
    HELD.fetch_sub(size, Relaxed);
    // SAFETY: the whole of a mapping that `arena` made and nobody uses any more.
    unsafe { libc::munmap(arena, size) };
}
