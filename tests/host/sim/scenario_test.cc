// Reading scenarios: what is derived, and one line for everything that is wrong.
#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/config/json.h"
#include "dsat/host/simulation.h"
#include "scenarios.h"

namespace dsat::host::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The message for a scenario with these changes.
std::string refusal(const Json& changes) {
  try {
    scenario(changes);
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  return "accepted";
}

TEST(Scenario, CountsTheParametersOfItsShape) {
  EXPECT_NEAR(scenario().model.num_params, 1.558e9, 0.001e9);  // GPT-2 XL
}

TEST(Scenario, ANumberOfParametersStandsForTheVocabulary) {
  const Scenario s = scenario({{"model", {{"vocab", nullptr}, {"num_params", 1.6e9}}}});
  EXPECT_EQ(s.model.num_params, 1.6e9);
  EXPECT_GT(s.model.vocab, 50257);
}

TEST(Scenario, ATrialTakesAllDevicesByDefault) {
  EXPECT_EQ(scenario().cluster.gpus_per_trial, 16);
  EXPECT_EQ(scenario({{"cluster", {{"gpus_per_trial", 8}}}}).cluster.gpus_per_trial, 8);
}

TEST(Scenario, ReadsSizesWithUnits) {
  EXPECT_EQ(scenario({{"cluster", {{"device_memory", "40GiB"}}}}).cluster.device_memory, 40.0 * (1 << 30));
  EXPECT_EQ(scenario({{"cluster", {{"inter_node_bandwidth", "25GB"}}}}).cluster.inter_node_bandwidth, 25e9);
}

struct Wrong {
  const char* changes;
  const char* message;
};

TEST(Scenario, SaysInOneLineWhatIsWrong) {
  const Wrong cases[] = {
      {R"({"model": null})", "cluster.json: model is missing"},
      {R"({"model": 3})", "cluster.json: model is no"},
      {R"({"cluster": {"flops": null}})", "cluster.json: cluster.flops is missing"},
      {R"({"model": {"layers": null}})", "cluster.json: model.layers is missing"},
      {R"({"model": {"layers": 0}})", "cluster.json: model.layers is 0.0"},
      {R"({"model": {"layers": 2.5}})", "cluster.json: model.layers is 2.5"},
      {R"({"model": {"heads": "many"}})", "cluster.json: model.heads is \"many"},
      {R"({"model": {"heads": 24}})", "cluster.json: model.hidden is no multiple"},
      {R"({"model": {"num_params": 7e9}})", "cluster.json: model.num_params is 7000000000.0"},
      {R"({"model": {"checkpointing": "some"}})", "cluster.json: model.checkpointing is 'some'"},
      {R"({"cluster": {"intra_node_bandwidth": 0}})", "cluster.json: cluster.intra_node_bandwidth is 0.0"},
      {R"({"cluster": {"inter_node_bandwidth": -1}})", "cluster.json: cluster.inter_node_bandwidth is -1.0"},
      {R"({"cluster": {"inter_node_bandwidth": null}})", "cluster.json: cluster.inter_node_bandwidth is missing"},
      {R"({"cluster": {"device_memory": "lots"}})", "cluster.json: cluster.device_memory is no size"},
      {R"({"cluster": {"device_memory": "0GB"}})", "cluster.json: cluster.device_memory is \"0GB"},
      {R"({"cluster": {"gpus_per_trial": 17}})", "cluster.json: cluster.gpus_per_trial is 17"},
      {R"({"cluster": {"nodes": 1e12}})", "cluster.json: cluster.nodes is 1000000000000.0"},
      {R"({"cluster": {"nodes": 1e9}})", "cluster.json: cluster.nodes x gpus_per_node is 8000000000"},
      {R"({"cluster": {"nodes": -1}})", "cluster.json: cluster.nodes is -1.0"},
      {R"({"cluster": {"gpus_per_trial": 9}})", "cluster.json: cluster.gpus_per_trial is 9"},
      {R"({"cluster": {"inter_node_bandwith": 1}})",
       "cluster.json: cluster.inter_node_bandwith is unknown: docs/simulator.md"},
      {R"({"cluster": {"inter_node_bandwidth": null, "inter_node_bandwith": 1}})",
       "cluster.json: cluster.inter_node_bandwith is unknown: did you mean 'inter_node_bandwidth'?"},
      {R"({"clusters": {}})", "cluster.json: clusters is unknown"},
      {R"({"engine": {"efficiency": 2}})", "cluster.json: engine.efficiency is 2.0"},
      {R"({"engine": {"fragmentation": 1}})", "cluster.json: engine.fragmentation is 1.0"},
      {R"({"noise": {"relative": -0.1}})", "cluster.json: noise.relative is -0.1"},
      {R"({"trial": {"steps": 0}})", "cluster.json: trial.steps is 0.0"},
      {R"({"ds_config": []})", "cluster.json: ds_config is no"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_THAT(refusal(Json::parse(wrong.changes)), StartsWith(wrong.message)) << wrong.changes;
  }
}

TEST(LoadSimulation, NamesAFileThatIsNotThere) {
  const Result<Simulation> none = load_simulation("/nowhere/cluster.json");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Status::Code::invalid);
  EXPECT_THAT(none.status().message(), HasSubstr("/nowhere/cluster.json"));
}

TEST(LoadSimulation, HasTheSlotsOfItsCluster) {
  Json json = example();
  json["cluster"]["gpus_per_trial"] = 8;
  const Result<Simulation> simulation = simulate_cluster(json, "cluster.json");
  ASSERT_TRUE(simulation.ok()) << simulation.status().message();
  EXPECT_EQ(simulation->slots, 16);
  EXPECT_EQ(simulation->slots_per_trial, 8);
  EXPECT_TRUE(simulation->base_config.contains("train_micro_batch_size_per_gpu"));
}

}  // namespace
}  // namespace dsat::host::sim
