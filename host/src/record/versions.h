// The versions that trained: of DeepSpeed, of torch, and of the accelerator's driver, as the memory probe saw them.
//
// Threading: pure functions. Errors: none; a trial without the probe reports no version.
#ifndef DSAT_HOST_RECORD_VERSIONS_H_
#define DSAT_HOST_RECORD_VERSIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/config/engine_version.h"
#include "record/trial.h"

namespace dsat::host {

// The version of DeepSpeed in the first trial that reported one. It stays the study's, because a searcher keeps the
// space of its start.
std::optional<config::EngineVersion> engine_version_of(const std::vector<Trial>& trials);

// Warnings at the end of the trial with this id: the first trial that reports a version shows its defects at the ZeRO
// stages of the study and the values of its configuration that the version refuses, and a later one each version that
// has changed. `trials` are in the order of their ids, from 0 on.
std::vector<std::string> warn_of_versions(const std::vector<Trial>& trials, uint64_t id,
                                          const std::vector<int>& stages);

// "DeepSpeed 0.14.5, torch 2.4.0, driver 580.95" of the last trial that reported them; empty: none did.
std::string versions_text(const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_VERSIONS_H_
