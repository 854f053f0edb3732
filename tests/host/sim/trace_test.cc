// Replaying recorded trials: what is answered at, between and beyond them, and what is refused.
#include "sim/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/config/json.h"
#include "dsat/host/record.h"
#include "dsat/host/simulation.h"
#include "sim/csv.h"

namespace dsat::host::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTrace =
    "zero_optimization.stage,zero_optimization.overlap_comm,train_micro_batch_size_per_gpu,outcome,model_info,"
    "throughput,peak_bytes,seconds,num_params\n"
    ",,1,,1,,,5,1000\n"
    "2,true,2,,,100,10,30,\n"
    "2,true,4,completed,,160,20,30,\n"
    "2,true,4,completed,,164,20,30,\n"
    "2,true,8,out_of_memory,,,,7,\n"
    "2,false,2,completed,,90,10,30,\n";

SimulatedRun ask(int stage, bool overlap, int64_t samples, uint64_t seed = 0, const std::string& csv = kTrace) {
  const Json config{{"train_micro_batch_size_per_gpu", samples},
                    {"train_batch_size", samples},
                    {"zero_optimization", {{"stage", stage}, {"overlap_comm", overlap}}}};
  return TraceSurface(csv, "trace.csv").run({config, false, 1, seed});
}
double throughput(const SimulatedRun& run) { return run.metrics.at("throughput").get<double>(); }

TEST(Csv, ReadsQuotedFieldsBack) {
  const std::string text = csv_field("a,\"b\"") + "," + csv_field("plain") + "\r\n";
  EXPECT_EQ(parse_csv(text, "f"), (std::vector<std::vector<std::string>>{{"a,\"b\"", "plain"}}));
}

TEST(Csv, ASpreadsheetsByteOrderMarkIsNoText) {
  EXPECT_EQ(parse_csv("\xEF\xBB\xBF"
                      "a,b\n",
                      "f"),
            (std::vector<std::vector<std::string>>{{"a", "b"}}));
}

TEST(TraceSurface, AnswersRecordedTrialsAsTheyWere) {
  const SimulatedRun run = ask(2, true, 2);
  EXPECT_EQ(throughput(run), 100);
  EXPECT_EQ(run.peak_bytes, 10u);
  EXPECT_EQ(run.seconds, 30);
  EXPECT_EQ(run.reason, "");
  EXPECT_EQ(ask(2, true, 8).outcome, Outcome::out_of_memory);
}

TEST(TraceSurface, OneOfSeveralMeasurementsByTheSeed) {
  EXPECT_EQ(throughput(ask(2, true, 4, 0)), 160);
  EXPECT_EQ(throughput(ask(2, true, 4, 1)), 164);
}

TEST(TraceSurface, DrawsALineBetweenMicroBatches) {
  const SimulatedRun run = ask(2, true, 3);
  EXPECT_NEAR(throughput(run), 132, 2.1);
  EXPECT_EQ(run.peak_bytes, 15u);
  EXPECT_NEAR(run.metrics.at("latency").get<double>() * throughput(run), 3e6, 1);
}

TEST(TraceSurface, BeyondTheRecordedEndsTheNearestOneAnswers) {
  const SimulatedRun below = ask(2, true, 1);
  EXPECT_EQ(throughput(below), 50);
  EXPECT_EQ(below.metrics.at("latency"), ask(2, true, 2).metrics.value("latency", 2e4)) << "as long as the smallest's";
  EXPECT_EQ(ask(2, true, 6).outcome, Outcome::out_of_memory);
  EXPECT_EQ(throughput(ask(2, false, 6)), 90);  // no out-of-memory was recorded
}

TEST(TraceSurface, OutOfMemoryAtAStageBoundsItsOtherConfigurations) {
  EXPECT_EQ(ask(2, false, 8).outcome, Outcome::out_of_memory);
  EXPECT_EQ(ask(2, false, 93462).outcome, Outcome::out_of_memory);
  const std::string larger = std::string(kTrace) + "2,false,16,,,300,40,30,\n";
  EXPECT_EQ(throughput(ask(2, false, 20, 0, larger)), 300) << "it completed more than what did not fit elsewhere";
  const std::string other_stage = std::string(kTrace) + "1,false,2,,,80,10,30,\n";
  EXPECT_EQ(throughput(ask(1, false, 100, 0, other_stage)), 80);
}

TEST(TraceSurface, OutOfMemoryWithMoreSamplesSaysNothingOfFewer) {
  const std::string text =
      "zero_optimization.overlap_comm,zero_optimization.stage,model_info,num_params,train_micro_batch_size_per_gpu,"
      "outcome,throughput\n,,1,1000,,,\ntrue,2,,,64,out_of_memory,\n";
  EXPECT_EQ(ask(2, true, 64, 0, text + "true,3,,,2,,90\n").outcome, Outcome::out_of_memory);
  EXPECT_EQ(ask(2, true, 65, 0, text + "true,3,,,2,,90\n").outcome, Outcome::out_of_memory);
  const SimulatedRun none = ask(2, true, 4, 0, text + "true,3,,,2,,90\n");
  EXPECT_EQ(none.outcome, Outcome::failed);
  EXPECT_THAT(none.reason, HasSubstr("so few samples"));
  const SimulatedRun other = ask(2, true, 4, 0, text + "false,2,,,4,,90\n");
  EXPECT_EQ(throughput(other), 90);
  EXPECT_THAT(other.reason, HasSubstr("differs in zero_optimization.overlap_comm"));
}

TEST(TraceSurface, ActivationsBoundWhatLiesBeyondTheRecord) {
  const std::string text =
      "zero_optimization.stage,model_info,num_params,activation_mem_per_gpu,device_memory,"
      "train_micro_batch_size_per_gpu,throughput,peak_bytes\n,1,1000,10,100,,,\n2,,,,,4,90,60\n";
  EXPECT_EQ(ask(2, true, 8, 0, text).outcome, Outcome::completed) << "60 and four times 10 are all of it";
  EXPECT_EQ(ask(2, true, 9, 0, text).outcome, Outcome::out_of_memory);
  const std::string of_two =
      "zero_optimization.stage,model_info,num_params,activation_mem_per_gpu,device_memory,"
      "train_micro_batch_size_per_gpu,throughput,peak_bytes\n,1,1000,20,100,2,,\n2,,,,,4,90,60\n";
  EXPECT_EQ(ask(2, true, 8, 0, of_two).outcome, Outcome::completed) << "20 are those of two samples";
}

TEST(TraceSurface, AnUnrecordedConfigurationIsAnsweredByTheNearestAndSaysSo) {
  const std::string only =
      "zero_optimization.overlap_comm,zero_optimization.stage,model_info,num_params,throughput\n"
      ",,1,1000,\ntrue,2,,,100\n";
  EXPECT_THAT(ask(2, false, 1, 0, only).reason, HasSubstr("differs in zero_optimization.overlap_comm"));
  const SimulatedRun none = ask(3, true, 1);
  EXPECT_EQ(none.outcome, Outcome::failed);
  EXPECT_THAT(none.reason, HasSubstr("ZeRO stage 3"));
}

TEST(TraceSurface, ATrialThatTellsItsConfigurationOutweighsOneThatDoesNot) {
  const std::string profiled =
      "zero_optimization.overlap_comm,zero_optimization.stage,model_info,num_params,throughput\n"
      ",,1,1000,\n,2,,,50\ntrue,2,,,100\n";
  EXPECT_EQ(throughput(ask(2, true, 1, 0, profiled)), 100);
}

TEST(TraceSurface, AConfigurationThatWasRecordedAroundTheMicroBatchGoesFirst) {
  const std::string text =
      "zero_optimization.overlap_comm,zero_optimization.contiguous_gradients,zero_optimization.stage,model_info,"
      "num_params,train_micro_batch_size_per_gpu,throughput\n"
      ",,,1,1000,,\n,,1,,,2,95\ntrue,,1,,,7,140\n";
  const TraceSurface surface(text, "trace.csv");
  const auto answer = [&](int64_t samples) {
    return throughput(surface.run({Json{{"train_micro_batch_size_per_gpu", samples},
                                        {"zero_optimization", {{"stage", 1}, {"overlap_comm", true}}}},
                                   false, 1, 0}));
  };
  EXPECT_EQ(answer(7), 140);
  EXPECT_EQ(answer(2), 40) << "that configuration was recorded";
  const Json other{{"train_micro_batch_size_per_gpu", 2},
                   {"zero_optimization", {{"stage", 1}, {"overlap_comm", true}, {"contiguous_gradients", true}}}};
  EXPECT_EQ(throughput(surface.run({other, false, 1, 0})), 95) << "nearer by its keys is the one at 7";
}

TEST(TraceSurface, KnowsTheDevicesOfATrial) {
  EXPECT_EQ(TraceSurface(kTrace, "trace.csv").slots(), 1);
  EXPECT_EQ(TraceSurface("slots,model_info,num_params,throughput\n2,1,9,\n4,,,3\n", "t").slots(), 4);
}

TEST(TraceSurface, ATrialIsAnsweredByThoseOfItsSize) {
  const TraceSurface surface(
      "slots,model_info,num_params,train_micro_batch_size_per_gpu,outcome,throughput\n1,1,9,1,,\n"
      "1,,,2,,100\n1,,,4,out_of_memory,\n4,,,2,,380\n4,,,8,,800\n",
      "trace.csv");
  const auto answer = [&](int slots, int64_t samples) {
    const Json config{{"train_micro_batch_size_per_gpu", samples}};
    return surface.run({config, false, slots, 0});
  };
  EXPECT_EQ(throughput(answer(1, 2)), 100);
  EXPECT_EQ(throughput(answer(4, 2)), 380);
  EXPECT_EQ(answer(1, 4).outcome, Outcome::out_of_memory);
  EXPECT_EQ(answer(4, 4).outcome, Outcome::completed);
  EXPECT_THAT(answer(2, 2).reason, HasSubstr("differs in slots"));
}

TEST(TraceSurface, RecordedValuesAreTheAxes) {
  const TraceSurface surface(kTrace, "trace.csv");
  EXPECT_EQ(config::find(surface.base_config(), "zero_optimization.overlap_comm")->size(), 2u);
  EXPECT_EQ(surface.metrics(), std::vector<std::string>{"throughput"});
}

struct Wrong {
  const char* text;
  const char* message;
};

TEST(TraceSurface, SaysInOneLineWhatIsWrong) {
  const Wrong cases[] = {
      {"", "no trials"},
      {"throughput\n", "no trials"},
      {"througput\n1\n", "mean 'throughput'?"},
      {"weather\n1\n", "column 'weather'"},
      {"zero_optimization.overlap_com\n1\n", "mean 'zero_optimization.overlap_comm'?"},
      {"throughput,throughput\n1,2\n", "column 'throughput' "},
      {"throughput,outcome\n1\n", "trial 1 has 1 fields"},
      {"throughput\nfast\n", "trace.csv: trial 1, throughput: 'fast'"},
      {"throughput\n-1\n", "trace.csv: trial 1, throughput: '-1'"},
      {"slots\n0\n", "trace.csv: trial 1, slots: '0'"},
      {"zero_optimization.stage\n7\n", "trial 1, zero_optimization.stage: '7'"},
      {"throughput,outcome\n1,good\n", "trace.csv: trial 1, outcome: outcome 'good'"},
      {"throughput\n1\n", "model's size"},
      {"peak_bytes\n1e40\n", "trace.csv: trial 1, peak_bytes: '1e40'"},
      {"model_info\nyes\n", "trace.csv: trial 1, model_info: 'yes'"},
      {"model_info,num_params\nTrue,5\n", "no completed trial"},
      {"model_info,num_params\n1,5\n", "no completed trial"},
      {"throughput\n\"1\n", "quoted field"},
  };
  for (const Wrong& wrong : cases) {
    const Result<Simulation> simulation = simulate_trace(wrong.text, "trace.csv");
    ASSERT_FALSE(simulation.ok()) << wrong.text;
    EXPECT_EQ(simulation.status().code(), Status::Code::invalid);
    EXPECT_THAT(simulation.status().message(), HasSubstr(wrong.message)) << wrong.text;
  }
}

TEST(TraceOf, NoCellMovesATerminalsCursor) {
  StudyRecord study;
  TrialRecord& trial = study.trials.emplace_back();
  trial.outcome = Outcome::failed;
  trial.attempt = 1;
  trial.config = trial.overrides = Json::object();
  trial.reason =
      "\x1b[2J\x07it, too, \x7f"
      "failed";
  const std::string csv = trace_of(study);
  EXPECT_THAT(csv, HasSubstr("\"it, too, failed\""));
  EXPECT_EQ(csv.find_first_of("\x1b\x07\x7f"), std::string::npos) << csv;
}

}  // namespace
}  // namespace dsat::host::sim
