// The files of the best, written again from the journal: after a crash, or after a study was moved.
//
// Threading: one call at a time for a folder. Errors: dsat::Error.
#ifndef DSAT_HOST_STUDY_RESCUE_BEST_AGAIN_H_
#define DSAT_HOST_STUDY_RESCUE_BEST_AGAIN_H_

#include <cstdint>
#include <filesystem>
#include <optional>

#include "dsat/host/rescue.h"

namespace dsat::host {

// The best, or the configuration of `trial`. `writes`: false, and nothing is written, while a host works on the study.
BestOutput best_again(const std::filesystem::path& dir, std::optional<uint64_t> trial, bool writes);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESCUE_BEST_AGAIN_H_
