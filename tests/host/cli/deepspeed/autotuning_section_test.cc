// The keys of DeepSpeed's autotuning section: values, older names, wrong types, tuner types.
#include "deepspeed/autotuning_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deepspeed/apply_autotuning.h"
#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

AutotuningSection read(const char* section) {
  return read_autotuning_section(Json{{"autotuning", Json::parse(section)}}, "c.json");
}
std::string refusal(const char* section) {
  return error_of([&] { read(section); });
}

TEST(AutotuningSection, ReadsEveryKey) {
  const AutotuningSection section = read(R"({
    "enabled": true, "fast": false, "metric": "latency", "start_profile_step": 4, "end_profile_step": 6,
    "results_dir": "r", "exps_dir": "e", "overwrite": true, "mp_size": 1, "max_train_batch_size": 64,
    "min_train_micro_batch_size_per_gpu": 2, "max_train_micro_batch_size_per_gpu": 1e2,
    "num_tuning_micro_batch_sizes": 4, "tuner_type": "random", "tuner_early_stopping": 7, "tuner_num_trials": 20,
    "arg_mappings": {"train_micro_batch_size_per_gpu": "--b"}, "model_info": {"num_params": 1e9}, "num_gpus": [2, 4],
    "num_nodes": 1})");
  EXPECT_TRUE(section.present);
  EXPECT_EQ(section.enabled, true);
  EXPECT_EQ(section.fast, false);
  EXPECT_EQ(section.overwrite, true);
  EXPECT_EQ(section.metric, "latency");
  EXPECT_EQ(section.results_dir, "r");
  EXPECT_EQ(section.exps_dir, "e");
  EXPECT_EQ(section.start_profile_step, 4);
  EXPECT_EQ(section.end_profile_step, 6);
  EXPECT_EQ(section.max_train_batch_size, 64);
  EXPECT_EQ(section.min_micro_batch, 2);
  EXPECT_EQ(section.max_micro_batch, 100);
  EXPECT_EQ(section.num_tuning_micro_batch_sizes, 4);
  EXPECT_EQ(section.tuner_type, "random");
  EXPECT_EQ(section.tuner_early_stopping, 7);
  EXPECT_EQ(section.tuner_num_trials, 20);
  EXPECT_THAT(section.arg_mappings, ElementsAre(Pair("train_micro_batch_size_per_gpu", "--b")));
  EXPECT_THAT(section.num_gpus, ElementsAre(2, 4));
  EXPECT_THAT(section.num_nodes, ElementsAre(1));
  EXPECT_TRUE(section.gives_model_size);
  EXPECT_THAT(section.notices, IsEmpty());
}

TEST(AutotuningSection, AbsentAndNullSayNothing) {
  EXPECT_FALSE(read_autotuning_section(Json::object(), "c.json").present);
  EXPECT_FALSE(read("null").present);
  const AutotuningSection section = read(R"({"metric": null, "arg_mappings": null, "num_gpus": null})");
  EXPECT_TRUE(section.present);
  EXPECT_FALSE(section.metric || section.fast || section.tuner_type || section.max_micro_batch);
  EXPECT_THAT(section.arg_mappings, IsEmpty());
  EXPECT_FALSE(read(R"({"model_info": {"profile": true, "num_params": 5}})").gives_model_size);
}

TEST(AutotuningSection, OlderNamesOfTheWindowAreReadAndNewerOnesBeatThem) {
  EXPECT_EQ(read(R"({"start_step": 2, "end_step": 9})").end_profile_step, 9);
  EXPECT_EQ(read(R"({"start_step": 2, "start_profile_step": 5})").start_profile_step, 5);
}

TEST(AutotuningSection, ReadsKeysInSpiteOfStraySpaceAndSaysSo) {
  const AutotuningSection section =
      read(R"({"tuner_type ": " gridsearch ", "arg_mappings": {"gradient_accumulation_steps ": "--g"}})");
  EXPECT_EQ(section.tuner_type, "gridsearch");
  EXPECT_THAT(section.arg_mappings, ElementsAre(Pair("gradient_accumulation_steps", "--g")));
  EXPECT_THAT(section.notices, ElementsAre(HasSubstr("autotuning.tuner_type '"),
                                           HasSubstr("arg_mappings.gradient_accumulation_steps '")));
}

TEST(AutotuningSection, AMappingWithoutDashesIsTheFlagOfThatName) {
  EXPECT_THAT(read(R"({"arg_mappings": {"train_micro_batch_size_per_gpu": "batch_size"}})").arg_mappings,
              ElementsAre(Pair("train_micro_batch_size_per_gpu", "--batch_size")));
}

TEST(AutotuningSection, NamesKeysThatChangeNothing) {
  EXPECT_THAT(read(R"({"min_train_batch_size": 1, "metric_path": null})").without_effect, IsEmpty());
  const AutotuningSection section = read(R"({"min_train_batch_size": 8, "metric_path": "m", "model_info_path": "i",
                                             "model_info": {"hidden_size": 10, "num_layers": 2}})");
  EXPECT_THAT(section.without_effect, ElementsAre("min_train_batch_size", "metric_path", "model_info_path",
                                                  "model_info.hidden_size", "model_info.num_layers"));
}

TEST(ApplyAutotuning, OneLineNamesTheKeysWithoutEffect) {
  AutotuningChoice choice;
  choice.section = read(R"({"min_train_batch_size": 8, "results_dir": "r", "tuner_early_stopping": 0})");
  const OptionSet set;
  host::StudyOptions options;
  const auto notices = apply_autotuning(choice, Values(set, {}), host::PluginInfo(), options);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("min_train_batch_size, results_dir")));
  EXPECT_FALSE(options.early_stopping);
  choice.deepspeed_form = true;
  EXPECT_THAT(apply_autotuning(choice, Values(set, {}), host::PluginInfo(), options),
              Contains(EndsWith("here: min_train_batch_size")));
}

TEST(ApplyAutotuning, BelowAutotuningNoSectionIsAnEmptyOne) {
  const OptionSet set;
  std::vector<host::StudyOptions> read_options;
  for (const char* config : {"{}", R"({"autotuning": null})", R"({"autotuning": {}})"}) {
    AutotuningChoice choice;
    choice.section = read_autotuning_section(Json::parse(config), "c.json");
    choice.deepspeed_form = true;
    host::StudyOptions options;
    EXPECT_THAT(apply_autotuning(choice, Values(set, {}), host::PluginInfo(), options),
                Contains(HasSubstr("autotuning.fast")));
    EXPECT_EQ(options.metric, "throughput") << config;
    EXPECT_FALSE(options.default_axes) << config;
    EXPECT_EQ(options.max_micro_batch, 1024) << config;
    EXPECT_EQ(searcher_of(choice).value().searcher, "guided") << config;
  }
  AutotuningChoice plain;
  EXPECT_FALSE(plain.holds()) << "without --autotuning nothing asks for it";
}

TEST(AutotuningSection, RefusesWrongTypesByFileKeyAndValue) {
  EXPECT_THAT(refusal(R"({"fast": "yes"})"), StartsWith("c.json: autotuning.fast is \"yes"));
  EXPECT_THAT(refusal(R"({"mp_size": 0})"), HasSubstr("autotuning.mp_size is 0"));
  EXPECT_EQ(read(R"({"tuner_early_stopping": 0})").tuner_early_stopping, 0) << "never, as DeepSpeed reads it";
  for (const char* bad : {R"("x")", "-1", "2.5", "[]", "true"}) {
    for (const char* key : {"tuner_num_trials", "max_train_batch_size", "num_gpus", "start_profile_step"}) {
      EXPECT_THAT(refusal(("{\"" + std::string(key) + "\": " + bad + "}").c_str()),
                  AllOf(HasSubstr("c.json: autotuning." + std::string(key) + " is "), HasSubstr("whole number")));
    }
  }
  EXPECT_THAT(refusal(R"({"tuner_type": "genetic"})"), AllOf(HasSubstr("gridsearch"), HasSubstr("model_based")));
  EXPECT_THAT(refusal(R"({"arg_mappings": {"a": "--"}})"), HasSubstr("arg_mappings.a is \"--\""));
  EXPECT_THAT(refusal(R"({"arg_mappings": {"a": "--b 3"}})"), HasSubstr("arg_mappings.a is \"--b 3\""));
  EXPECT_THAT(refusal(R"({"model_info": 7})"), HasSubstr("model_info is 7"));
  EXPECT_THAT(refusal(R"({"min_train_micro_batch_size_per_gpu": 8, "max_train_micro_batch_size_per_gpu": 4})"),
              HasSubstr("nothing is left"));
  EXPECT_THAT(error_of([] { read_autotuning_section(Json{{"autotuning", 1}}, "c.json"); }), HasSubstr("object"));
}

TEST(DeepspeedStages, AreTheOneNamedOrAll) {
  EXPECT_THAT(*deepspeed_stages(Json::parse(R"({"zero_optimization": {"stage": 2}})")), ElementsAre(2));
  for (const char* all : {"{}", R"({"zero_optimization": "all"})", R"({"zero_optimization": {"stage": "all"}})",
                          R"({"zero_optimization": {"stage": [1, 2]}})"}) {
    EXPECT_THAT(*deepspeed_stages(Json::parse(all)), ElementsAre(0, 1, 2, 3)) << all;
  }
  EXPECT_EQ(deepspeed_stages(Json()), std::nullopt);
}

TEST(SearcherOf, SaysWhichOneStandsForATunerType) {
  AutotuningChoice choice;
  choice.section = read(R"({"tuner_type": "random"})");
  EXPECT_EQ(searcher_of(choice)->searcher, "random");
  EXPECT_THAT(searcher_of(choice)->notice, AllOf(HasSubstr("tuner_type random"), HasSubstr("searcher is random")));
  choice.section = read("{}");
  EXPECT_FALSE(searcher_of(choice)) << "a plain command keeps dsat's default";
  choice.deepspeed_form = true;
  EXPECT_THAT(searcher_of(choice)->notice, HasSubstr("model_based"));
  choice.section = AutotuningSection();
  EXPECT_THAT(searcher_of(choice)->notice, HasSubstr("model_based")) << "no section is as an empty one";
}

}  // namespace
}  // namespace dsat::cli
