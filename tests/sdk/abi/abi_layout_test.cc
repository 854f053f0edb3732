// The layout of ABI version 1, to the byte. A released struct only grows at its end: these offsets never change.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "dsat/abi.h"
#include "sdk/abi/layout_table.h"

extern "C" size_t dsat_c_size(int index);

namespace {

static_assert(sizeof(void*) == 8, "the layout below is that of 64-bit machines");

// A member lies right behind the one before it: no padding in between.
#define FOLLOWS(type, first, second) \
  static_assert(offsetof(type, second) == offsetof(type, first) + sizeof(type::first), #type "." #second)
// The last member ends where the struct does: no padding at the end either.
#define ENDS(type, last, size)                                                                  \
  static_assert(offsetof(type, last) + sizeof(type::last) == sizeof(type), #type " is padded"); \
  static_assert(sizeof(type) == (size), #type " has another size")

FOLLOWS(dsat_str, data, size);
ENDS(dsat_str, size, 16);

FOLLOWS(dsat_metric, name, value);
ENDS(dsat_metric, value, 24);

FOLLOWS(dsat_trial_request, struct_size, flags);
FOLLOWS(dsat_trial_request, flags, parent);
FOLLOWS(dsat_trial_request, parent, overrides_json);
FOLLOWS(dsat_trial_request, overrides_json, note);
ENDS(dsat_trial_request, note, 48);

FOLLOWS(dsat_host, struct_size, abi_minor);
FOLLOWS(dsat_host, abi_minor, host_data);
FOLLOWS(dsat_host, host_data, set_error);
FOLLOWS(dsat_host, set_error, log);
FOLLOWS(dsat_host, log, create_trial);
FOLLOWS(dsat_host, create_trial, stop_trial);
FOLLOWS(dsat_host, stop_trial, finish);
FOLLOWS(dsat_host, finish, set_profile);
FOLLOWS(dsat_host, set_profile, get_extension);
ENDS(dsat_host, get_extension, 72);

FOLLOWS(dsat_study, struct_size, reserved);
FOLLOWS(dsat_study, reserved, seed);
FOLLOWS(dsat_study, seed, study_json);
ENDS(dsat_study, study_json, 32);

FOLLOWS(dsat_result, struct_size, metric_count);
FOLLOWS(dsat_result, metric_count, trial);
FOLLOWS(dsat_result, trial, step);
FOLLOWS(dsat_result, step, metrics);
ENDS(dsat_result, metrics, 32);

FOLLOWS(dsat_exit, struct_size, outcome);
FOLLOWS(dsat_exit, outcome, trial);
FOLLOWS(dsat_exit, trial, peak_bytes);
FOLLOWS(dsat_exit, peak_bytes, exit_code);
FOLLOWS(dsat_exit, exit_code, term_signal);
FOLLOWS(dsat_exit, term_signal, attempt);
FOLLOWS(dsat_exit, attempt, reserved);
FOLLOWS(dsat_exit, reserved, reason);
FOLLOWS(dsat_exit, reason, peak_above_bytes);
FOLLOWS(dsat_exit, peak_above_bytes, allocator_retries);
ENDS(dsat_exit, allocator_retries, 72);

FOLLOWS(dsat_sink, ctx, write);
ENDS(dsat_sink, write, 16);

FOLLOWS(dsat_strategy, struct_size, reserved);
FOLLOWS(dsat_strategy, reserved, plugin_data);
FOLLOWS(dsat_strategy, plugin_data, start);
FOLLOWS(dsat_strategy, start, restore);
FOLLOWS(dsat_strategy, restore, on_result);
FOLLOWS(dsat_strategy, on_result, on_trial_exited);
FOLLOWS(dsat_strategy, on_trial_exited, save);
FOLLOWS(dsat_strategy, save, destroy);
ENDS(dsat_strategy, destroy, 64);

FOLLOWS(dsat_descriptor, struct_size, state_version);
FOLLOWS(dsat_descriptor, state_version, id);
FOLLOWS(dsat_descriptor, id, name);
FOLLOWS(dsat_descriptor, name, version);
FOLLOWS(dsat_descriptor, version, summary);
FOLLOWS(dsat_descriptor, summary, options_json);
FOLLOWS(dsat_descriptor, options_json, study_json);
ENDS(dsat_descriptor, study_json, 56);

FOLLOWS(dsat_factory, struct_size, count);
FOLLOWS(dsat_factory, count, descriptor);
FOLLOWS(dsat_factory, descriptor, create);
ENDS(dsat_factory, create, 24);

FOLLOWS(dsat_plugin_entry, magic, struct_size);
FOLLOWS(dsat_plugin_entry, struct_size, abi_major);
FOLLOWS(dsat_plugin_entry, abi_major, abi_minor);
FOLLOWS(dsat_plugin_entry, abi_minor, get_factory);
ENDS(dsat_plugin_entry, get_factory, 24);

TEST(AbiLayout, CAndCppSeeTheSameSizes) {
  const size_t sizes[] = {sizeof(dsat_str),        sizeof(dsat_metric),  sizeof(dsat_trial_request),
                          sizeof(dsat_host),       sizeof(dsat_study),   sizeof(dsat_result),
                          sizeof(dsat_exit),       sizeof(dsat_sink),    sizeof(dsat_strategy),
                          sizeof(dsat_descriptor), sizeof(dsat_factory), sizeof(dsat_plugin_entry)};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(dsat_c_size(i), sizes[i]) << i;
}

TEST(AbiLayout, WhatWasReleasedLiesWhereItLay) {
  std::map<std::string, std::pair<size_t, size_t>> today;
  for (const layout_row* row = layout_of_today; row->member != nullptr; ++row) {
    today[row->member] = {row->offset, row->size};
  }
  for (const layout_row* released : {layout_of_1_0}) {
    for (const layout_row* row = released; row->member != nullptr; ++row) {
      EXPECT_EQ(today[row->member], std::make_pair(row->offset, row->size)) << row->member;
    }
  }
  EXPECT_EQ(DSAT_ABI_MINOR, 0u) << "a new minor: put its header into tests/fixtures/abi when it is released";
}

TEST(AbiLayout, TheMagicSpellsDsat) {
  const uint32_t magic = DSAT_MAGIC;
  EXPECT_EQ(std::memcmp(&magic, "DSAT", 4), 0);
}

TEST(AbiLayout, CodesNeverChange) {
  EXPECT_EQ(DSAT_OK, 0);
  EXPECT_EQ(DSAT_CANCELLED, 1);
  EXPECT_EQ(DSAT_INVALID_ARGUMENT, 3);
  EXPECT_EQ(DSAT_NOT_FOUND, 5);
  EXPECT_EQ(DSAT_ALREADY_EXISTS, 6);
  EXPECT_EQ(DSAT_RESOURCE_EXHAUSTED, 8);
  EXPECT_EQ(DSAT_FAILED_PRECONDITION, 9);
  EXPECT_EQ(DSAT_UNIMPLEMENTED, 12);
  EXPECT_EQ(DSAT_INTERNAL, 13);
  EXPECT_EQ(DSAT_DATA_LOSS, 15);
  EXPECT_EQ(DSAT_TRIAL_COMPLETED, 0);
  EXPECT_EQ(DSAT_TRIAL_OUT_OF_MEMORY, 1);
  EXPECT_EQ(DSAT_TRIAL_FAILED, 2);
  EXPECT_EQ(DSAT_TRIAL_TIMED_OUT, 3);
  EXPECT_EQ(DSAT_TRIAL_INVALID_CONFIG, 4);
  EXPECT_EQ(DSAT_TRIAL_STOPPED, 5);
  EXPECT_EQ(DSAT_TRIAL_LOST, 6);
  EXPECT_EQ(DSAT_TRIAL_DIVERGED, 7);
  EXPECT_EQ(DSAT_TRIAL_REPEAT, 1);
}

TEST(AbiLayout, HasTellsWhatAnOlderPeerLacks) {
  dsat_exit exit{};
  exit.struct_size = offsetof(dsat_exit, reason);
  EXPECT_TRUE(DSAT_HAS(&exit, dsat_exit, attempt));
  EXPECT_FALSE(DSAT_HAS(&exit, dsat_exit, reason));
  exit.struct_size = sizeof(dsat_exit);
  EXPECT_TRUE(DSAT_HAS(&exit, dsat_exit, reason));
}

}  // namespace
