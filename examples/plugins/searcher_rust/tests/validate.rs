//! Tries the library as the host loads it, by `dsat-host validate`; the program is in PATH.
use std::process::Command;

#[test]
fn dsat_host_validates_it() {
    // Cargo builds the library beside this test.
    let library = std::env::current_exe().unwrap().with_file_name("libladder.so");
    let result = Command::new("dsat-host").arg("validate").arg(&library).output();
    let result = result.unwrap_or_else(|error| panic!("dsat-host in PATH: {error}"));
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stdout));
}
