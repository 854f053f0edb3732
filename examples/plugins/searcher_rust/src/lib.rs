//! A searcher in Rust: tries the micro batches 1, 2, 4, 8, ... of your own configuration until one fails.
mod abi;

use abi::*;
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};

/// What to try next. It knows nothing of the host, so that it is tested alone.
struct Rungs {
    micro_batch: u64,
}

impl Rungs {
    fn overrides(&self) -> String {
        format!("{{\"train_micro_batch_size_per_gpu\": {}}}", self.micro_batch)
    }

    /// After a trial with this outcome: is there another rung?
    fn climb(&mut self, outcome: i32) -> bool {
        if outcome != COMPLETED || self.micro_batch > 1 << 20 {
            return false;
        }
        self.micro_batch *= 2;
        true
    }
}

struct Searcher {
    strategy: Strategy, // the host's view
    host: *const Host,
    rungs: Rungs,
    last: u64,
}

impl Searcher {
    unsafe fn ask(&mut self) -> i32 {
        let overrides = self.rungs.overrides();
        let request = TrialRequest {
            struct_size: size_of::<TrialRequest>(),
            flags: 0,
            parent: self.last,
            overrides_json: Str::of(&overrides),
            note: Str::of("the next rung"),
        };
        match ((*self.host).create_trial)(self.host, &request, &mut self.last) {
            RESOURCE_EXHAUSTED => self.finish("the trial limit is reached"),
            status => status,
        }
    }

    unsafe fn finish(&self, reason: &str) -> i32 {
        ((*self.host).finish)(self.host, Str::of(reason), NO_TRIAL)
    }
}

unsafe extern "C" fn start(strategy: *mut Strategy, _study: *const Study) -> i32 {
    (*((*strategy).plugin_data as *mut Searcher)).ask()
}

unsafe extern "C" fn on_result(_strategy: *mut Strategy, _result: *const TrialResult) -> i32 {
    OK // the host itself finds the best trial
}

unsafe extern "C" fn on_trial_exited(strategy: *mut Strategy, exit: *const Exit) -> i32 {
    let this = &mut *((*strategy).plugin_data as *mut Searcher);
    let exit = &*exit;
    if exit.trial != this.last || exit.outcome == STOPPED {
        return OK;
    }
    if this.rungs.climb(exit.outcome) {
        this.ask()
    } else {
        this.finish("the largest micro batch is known")
    }
}

unsafe extern "C" fn destroy(strategy: *mut Strategy) {
    drop(Box::from_raw((*strategy).plugin_data as *mut Searcher));
}

unsafe extern "C" fn create(_id: *const c_char, host: *const Host, _options: Str, out: *mut *mut Strategy) -> i32 {
    let strategy = Strategy {
        struct_size: size_of::<Strategy>(),
        reserved: 0,
        plugin_data: std::ptr::null_mut(),
        start,
        restore: None,
        on_result,
        on_trial_exited,
        save: None,
        destroy,
    };
    let this = Box::into_raw(Box::new(Searcher { strategy, host, rungs: Rungs { micro_batch: 1 }, last: NO_TRIAL }));
    (*this).strategy.plugin_data = this as *mut c_void;
    *out = &mut (*this).strategy;
    OK
}

const fn text(bytes: &'static [u8]) -> *const c_char {
    bytes.as_ptr() as *const c_char
}

static DESCRIPTOR: Descriptor = Descriptor {
    struct_size: size_of::<Descriptor>(),
    state_version: 1,
    id: text(b"example.ladder\0"),
    name: text(b"ladder\0"),
    version: text(b"1.0.0\0"),
    summary: text(b"doubles the micro batch until it fails\0"),
    options_json: text(b"[]\0"),       // no options
    study_json: std::ptr::null(), // no wishes
};

unsafe extern "C" fn descriptor(index: u32) -> *const Descriptor {
    if index == 0 { &DESCRIPTOR } else { std::ptr::null() }
}

static FACTORY: Factory = Factory { struct_size: size_of::<Factory>(), count: 1, descriptor, create };

unsafe extern "C" fn get_factory(id: *const c_char) -> *const c_void {
    if CStr::from_ptr(id).to_bytes() == SEARCHER_FACTORY {
        &FACTORY as *const Factory as *const c_void
    } else {
        std::ptr::null()
    }
}

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static dsat_plugin_entry_v1: PluginEntry =
    PluginEntry { magic: MAGIC, struct_size: size_of::<PluginEntry>(), abi_major: 1, abi_minor: 0, get_factory };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_climbs_until_a_trial_does_not_fit() {
        let mut rungs = Rungs { micro_batch: 1 };
        assert_eq!(rungs.overrides(), "{\"train_micro_batch_size_per_gpu\": 1}");
        assert!(rungs.climb(COMPLETED));
        assert!(rungs.climb(COMPLETED));
        assert_eq!(rungs.micro_batch, 4);
        assert!(!rungs.climb(OUT_OF_MEMORY));
    }
}
