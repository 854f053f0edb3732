// The study that a plugin reads, from the JSON of the host.
#include "dsat/study.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

Study full() {
  Study study;
  study.metric = "latency";
  study.maximise = false;
  study.zero_stages = {0, 3};
  study.base_config = {{"a", 1}};
  study.space = {{"stages", Json::array()}};
  study.limits = {50, 4, 5, 8, 2, 2, 1};
  study.device_memory_bytes = 80000000000;
  study.profile = {{"schema", 1}};
  study.observations = Json::array({{{"trial", 0}}});
  return study;
}

TEST(Study, ComesBackFromItsJson) {
  const Study study = full();
  const Study back = Study::parse(study.to_json().dump());
  EXPECT_EQ(back.to_json(), study.to_json());
  EXPECT_FALSE(back.maximise);
  EXPECT_EQ(back.limits.data_parallel_size, 2);
  EXPECT_EQ(back.device_memory_bytes, 80000000000u);
}

TEST(Study, UnknownDeviceMemoryAndProfileAreNull) {
  Study study = full();
  study.device_memory_bytes.reset();
  study.profile = nullptr;
  const Study back = Study::parse(study.to_json().dump());
  EXPECT_FALSE(back.device_memory_bytes);
  EXPECT_TRUE(back.profile.is_null());
}

TEST(Study, MembersOfLaterVersionsAreIgnored) {
  Json json = full().to_json();
  json["something_new"] = {1, 2, 3};
  EXPECT_EQ(Study::parse(json.dump()).to_json(), full().to_json());
}

TEST(Study, WhatIsMissingOrNotJsonIsAnError) {
  for (const char* member : {"metric", "direction", "zero_stages", "base_config", "space", "limits",
                             "device_memory_bytes", "profile", "observations"}) {
    Json json = full().to_json();
    json.erase(member);
    EXPECT_ANY_THROW(Study::parse(json.dump())) << member;
  }
  EXPECT_ANY_THROW(Study::parse(""));
  EXPECT_ANY_THROW(Study::parse("{"));
}

TEST(Study, TheSeedTravelsBesideIt) {
  const std::string json = full().to_json().dump();
  const dsat_study raw{sizeof(dsat_study), 0, 99, {json.data(), json.size()}};
  EXPECT_EQ(Study::from(raw).seed, 99u);
}

}  // namespace
}  // namespace dsat
