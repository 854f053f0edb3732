// The bound on what a trial prints: a log without an end would fill the disk of everybody.
// Threading: pure except for reading sizes. Units: bytes. Errors: none; what cannot be read counts as nothing.
#ifndef DSAT_HOST_RUNNER_OUTPUT_LIMIT_H_
#define DSAT_HOST_RUNNER_OUTPUT_LIMIT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace dsat::host {

// No trial of a few steps prints this much.
inline constexpr uint64_t kMostOutputBytes = 1'000'000'000;
// A log of this size may stay even where little space is free.
inline constexpr uint64_t kHarmlessOutputBytes = 16'000'000;

// The output of a trial: its two streams, and its ranks' logs.
uint64_t output_bytes(const std::filesystem::path& trial_dir);
// Returns "" or why the trial has to end: its logs have passed a limit, or take more space than they leave.
// `free_bytes`: what they leave on the disk; nullopt: unknown.
std::string why_too_much(uint64_t output_bytes, std::optional<uint64_t> free_bytes);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_OUTPUT_LIMIT_H_
