//! `dsat/abi.h` in Rust, as much of it as a searcher needs: the same layouts in the same order. The header has the rules.
#![allow(dead_code)]
use std::os::raw::{c_char, c_void};

pub const OK: i32 = 0;
pub const RESOURCE_EXHAUSTED: i32 = 8; // the trial limit is reached
pub const NO_TRIAL: u64 = u64::MAX;

pub const COMPLETED: i32 = 0;
pub const OUT_OF_MEMORY: i32 = 1;
pub const STOPPED: i32 = 5;

/// UTF-8 bytes, borrowed for the call.
#[repr(C)]
pub struct Str {
    pub data: *const c_char,
    pub size: usize,
}

impl Str {
    pub fn of(text: &str) -> Str {
        Str { data: text.as_ptr() as *const c_char, size: text.len() }
    }
}

#[repr(C)]
pub struct TrialRequest {
    pub struct_size: u32,
    pub flags: u32,
    pub parent: u64,
    pub overrides_json: Str,
    pub note: Str,
}

#[repr(C)]
pub struct Host {
    pub struct_size: u32,
    pub abi_minor: u32,
    pub host_data: *mut c_void,
    pub set_error: unsafe extern "C" fn(*const Host, Str),
    pub log: unsafe extern "C" fn(*const Host, i32, Str),
    pub create_trial: unsafe extern "C" fn(*const Host, *const TrialRequest, *mut u64) -> i32,
    pub stop_trial: unsafe extern "C" fn(*const Host, u64) -> i32,
    pub finish: unsafe extern "C" fn(*const Host, Str, u64) -> i32,
    pub set_profile: unsafe extern "C" fn(*const Host, Str) -> i32,
    pub get_extension: unsafe extern "C" fn(*const Host, *const c_char) -> *const c_void,
}

#[repr(C)]
pub struct Study {
    pub struct_size: u32,
    pub reserved: u32,
    pub seed: u64,
    pub study_json: Str,
}

#[repr(C)]
pub struct Metric {
    pub name: Str,
    pub value: f64,
}

#[repr(C)]
pub struct TrialResult {
    pub struct_size: u32,
    pub metric_count: u32,
    pub trial: u64,
    pub step: u64,
    pub metrics: *const Metric,
}

#[repr(C)]
pub struct Exit {
    pub struct_size: u32,
    pub outcome: i32,
    pub trial: u64,
    pub peak_bytes: u64,
    pub exit_code: i32,
    pub term_signal: i32,
    pub attempt: u32,
    pub reserved: u32,
    pub reason: Str,
    pub peak_above_bytes: u64,
    pub allocator_retries: u64,
}

/// Without `restore` and `save` the host replays the study's events instead.
#[repr(C)]
pub struct Strategy {
    pub struct_size: u32,
    pub reserved: u32,
    pub plugin_data: *mut c_void,
    pub start: unsafe extern "C" fn(*mut Strategy, *const Study) -> i32,
    pub restore: Option<unsafe extern "C" fn(*mut Strategy, *const Study, Str) -> i32>,
    pub on_result: unsafe extern "C" fn(*mut Strategy, *const TrialResult) -> i32,
    pub on_trial_exited: unsafe extern "C" fn(*mut Strategy, *const Exit) -> i32,
    pub save: Option<unsafe extern "C" fn(*mut Strategy, *const c_void) -> i32>,
    pub destroy: unsafe extern "C" fn(*mut Strategy),
}

#[repr(C)]
pub struct Descriptor {
    pub struct_size: u32,
    pub state_version: u32,
    pub id: *const c_char,
    pub name: *const c_char,
    pub version: *const c_char,
    pub summary: *const c_char,
    pub options_json: *const c_char,
    pub study_json: *const c_char,
}

#[repr(C)]
pub struct Factory {
    pub struct_size: u32,
    pub count: u32,
    pub descriptor: unsafe extern "C" fn(u32) -> *const Descriptor,
    pub create: unsafe extern "C" fn(*const c_char, *const Host, Str, *mut *mut Strategy) -> i32,
}

#[repr(C)]
pub struct PluginEntry {
    pub magic: u32,
    pub struct_size: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub get_factory: unsafe extern "C" fn(*const c_char) -> *const c_void,
}

pub const MAGIC: u32 = 0x5441_5344;
pub const SEARCHER_FACTORY: &[u8] = b"dsat.searcher-factory/1";

// They are constant data.
unsafe impl Sync for Descriptor {}

pub const fn size_of<T>() -> u32 {
    std::mem::size_of::<T>() as u32
}

// The sizes that the header asserts.
const _: () = assert!(size_of::<TrialRequest>() == 48 && size_of::<Host>() == 72 && size_of::<Study>() == 32);
const _: () = assert!(size_of::<TrialResult>() == 32 && size_of::<Exit>() == 72 && size_of::<Strategy>() == 64);
const _: () = assert!(size_of::<Descriptor>() == 56 && size_of::<Factory>() == 24 && size_of::<PluginEntry>() == 24);
