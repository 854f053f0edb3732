// DeepSpeed's rule of batch sizes: reading, checking, completing, in 64 bits.
#include "dsat/config/batch.h"

#include <limits>

#include "dsat/config/json.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr auto kNone = std::nullopt;

Json config(const char* text) { return parse(text, "test"); }

void expect_sizes(const BatchSizes& sizes, int64_t micro_batch, int64_t accumulation, int64_t train_batch) {
  EXPECT_EQ(sizes.micro_batch, micro_batch);
  EXPECT_EQ(sizes.accumulation, accumulation);
  EXPECT_EQ(sizes.train_batch, train_batch);
}

TEST(ReadBatchSizes, ReadsWhatIsGiven) {
  const GivenBatchSizes given = read_batch_sizes(config(
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4.0, "gradient_accumulation_steps": "auto"})"));
  EXPECT_EQ(given.train_batch, 64);
  EXPECT_EQ(given.micro_batch, 4);
  EXPECT_EQ(given.accumulation, kNone);
  EXPECT_EQ(read_batch_sizes(config(R"({"train_batch_size": null})")).train_batch, kNone);
}

TEST(ReadBatchSizes, RefusesAnythingButAPositiveInteger) {
  for (const char* value : {"0", "-1", "1.5", "true", "\"8\"", "[8]", "{}", "1e30"}) {
    const Json json = config((std::string("{\"train_micro_batch_size_per_gpu\": ") + value + "}").c_str());
    EXPECT_THAT(error_of([&] { read_batch_sizes(json); }),
                AllOf(HasSubstr("train_micro_batch_size_per_gpu is "), HasSubstr("positive integer")))
        << value;
  }
}

TEST(CheckBatchSizes, AcceptsConsistentSizes) {
  EXPECT_NO_THROW(check_batch_sizes({4, 2, 64}, 8));
  EXPECT_NO_THROW(check_batch_sizes({4, kNone, 64}, 8));
  EXPECT_NO_THROW(check_batch_sizes({kNone, 2, 64}, 8));
  EXPECT_NO_THROW(check_batch_sizes({kNone, kNone, 64}, 8));
  EXPECT_NO_THROW(check_batch_sizes({4, 2, kNone}, 8));
  EXPECT_NO_THROW(check_batch_sizes({}, 8));
}

TEST(CheckBatchSizes, NamesKeysAndNumbersOfAContradiction) {
  EXPECT_THAT(error_of([] {
                check_batch_sizes({4, 2, 65}, 8);
              }),
              AllOf(HasSubstr("train_batch_size 65"), HasSubstr("train_micro_batch_size_per_gpu 4"),
                    HasSubstr("gradient_accumulation_steps 2"), HasSubstr("8 = 64")));
  EXPECT_THAT(error_of([] { check_batch_sizes({4, 2, 128}, 8); }), HasSubstr("contradict"));
  EXPECT_THAT(error_of([] {
                check_batch_sizes({3, kNone, 64}, 8);
              }),
              AllOf(HasSubstr("64 is not"), HasSubstr("train_micro_batch_size_per_gpu 3"), HasSubstr("8 = 24")));
  EXPECT_THAT(error_of([] { check_batch_sizes({kNone, 3, 64}, 8); }), HasSubstr("gradient_accumulation_steps 3"));
  EXPECT_THAT(error_of([] {
                check_batch_sizes({kNone, kNone, 63}, 8);
              }),
              AllOf(HasSubstr("63 is not"), HasSubstr("data-parallel size 8")));
  EXPECT_THAT(error_of([] { check_batch_sizes({}, 0); }), HasSubstr("size is 0"));
}

TEST(CheckBatchSizes, RefusesProductsBeyond64Bits) {
  EXPECT_THAT(error_of([] { check_batch_sizes({kHuge, 2, 64}, 8); }), HasSubstr("too large"));
}

TEST(FitBatchSizes, AnotherNumberOfDevicesChangesTheTrainBatchAlone) {
  expect_sizes(fit_batch_sizes({4, 2, 64}, 8), 4, 2, 64);
  expect_sizes(fit_batch_sizes({4, 2, 512}, 8), 4, 2, 64);
  expect_sizes(fit_batch_sizes({4, 2, 8}, 8), 4, 2, 64);
  expect_sizes(fit_batch_sizes({kNone, kNone, kNone}, 8), 1, 1, 8);
}

TEST(FitBatchSizes, AMissingSizeIsAsLargeAsTheTrainBatchAllows) {
  expect_sizes(fit_batch_sizes({4, kNone, 256}, 6), 4, 10, 240);
  expect_sizes(fit_batch_sizes({kNone, 2, 256}, 6), 21, 2, 252);
  expect_sizes(fit_batch_sizes({kNone, kNone, 256}, 6), 42, 1, 252);
  expect_sizes(fit_batch_sizes({4, kNone, 8}, 6), 4, 1, 24);
  expect_sizes(fit_batch_sizes({kNone, kNone, 4}, 6), 1, 1, 6);
}

TEST(FitBatchSizes, RefusesWhatNoNumberOfDevicesMakesTrue) {
  EXPECT_THAT(error_of([] { fit_batch_sizes({4, 2, 65}, 8); }), AllOf(HasSubstr("65"), HasSubstr("any number")));
  EXPECT_THAT(error_of([] { fit_batch_sizes({3, kNone, 64}, 8); }), HasSubstr("train_micro_batch_size_per_gpu 3"));
  EXPECT_THAT(error_of([] { fit_batch_sizes({kNone, 3, 64}, 8); }), HasSubstr("gradient_accumulation_steps 3"));
  EXPECT_THAT(error_of([] { fit_batch_sizes({4, 2, 4}, 8); }), HasSubstr("train_batch_size 4"));
  EXPECT_THAT(error_of([] { fit_batch_sizes({kHuge, 2, 64}, 8); }), HasSubstr("too large"));
}

TEST(CompleteBatchSizes, DerivesWhatIsMissing) {
  expect_sizes(complete_batch_sizes({}, 8), 1, 1, 8);
  expect_sizes(complete_batch_sizes({4, kNone, kNone}, 8), 4, 1, 32);
  expect_sizes(complete_batch_sizes({kNone, 3, kNone}, 8), 1, 3, 24);
  expect_sizes(complete_batch_sizes({kNone, kNone, 64}, 8), 8, 1, 64);
  expect_sizes(complete_batch_sizes({4, 2, kNone}, 8), 4, 2, 64);
  expect_sizes(complete_batch_sizes({4, kNone, 64}, 8), 4, 2, 64);
  expect_sizes(complete_batch_sizes({kNone, 2, 64}, 8), 4, 2, 64);
  expect_sizes(complete_batch_sizes({4, 2, 64}, 8), 4, 2, 64);
}

TEST(TrialBatchSizes, TrainBatchFollowsTheMicroBatch) {
  expect_sizes(trial_batch_sizes(6, 2, 8, kNone), 6, 2, 96);
  EXPECT_THAT(error_of([] { trial_batch_sizes(0, 1, 8, kNone); }), HasSubstr("train_micro_batch_size_per_gpu is 0"));
  EXPECT_THAT(error_of([] { trial_batch_sizes(1, 0, 8, kNone); }), HasSubstr("gradient_accumulation_steps is 0"));
  EXPECT_THAT(error_of([] { trial_batch_sizes(kHuge, 1, 8, kNone); }), HasSubstr("too large"));
}

TEST(TrialBatchSizes, AccumulationFollowsAFixedGlobalBatch) {
  expect_sizes(trial_batch_sizes(4, 7, 8, 64), 4, 2, 64);
  EXPECT_THAT(
      error_of([] { trial_batch_sizes(3, 1, 8, 64); }),
      AllOf(HasSubstr("--global-batch 64"), HasSubstr("train_micro_batch_size_per_gpu 3"), HasSubstr("8 = 24")));
}

TEST(WriteBatchSizes, WritesAllThreeKeysOverAuto) {
  Json json = config(R"({"train_batch_size": "auto", "seed": 1})");
  write_batch_sizes(json, {4, 2, 64});
  EXPECT_EQ(json, config(R"({"train_batch_size": 64, "seed": 1, "train_micro_batch_size_per_gpu": 4,
                             "gradient_accumulation_steps": 2})"));
}

TEST(DataParallelSize, DividesByTensorAndPipelineParallelism) {
  EXPECT_EQ(data_parallel_size(8, config("{}")), 8);
  EXPECT_EQ(data_parallel_size(8, config(R"({"pipeline": {"stages": 2}})")), 4);
  EXPECT_EQ(data_parallel_size(8, config(R"({"pipeline": {"stages": "auto"}})")), 8);
  EXPECT_EQ(data_parallel_size(8, config(R"({"mp_size": 4})")), 2);
  EXPECT_EQ(data_parallel_size(8, config(R"({"mp_size": 0})")), 8);
  EXPECT_EQ(data_parallel_size(8, config(R"({"autotuning": {"mp_size": 2}, "pipeline": {"stages": 2}})")), 2);
  EXPECT_EQ(data_parallel_size(8, config(R"({"mp_size": 2, "tensor_parallel": {"autotp_size": 2}})")), 4);
}

TEST(DataParallelSize, TensorParallelismOfDeepSpeedsOwnCountsEveryRank) {
  EXPECT_EQ(data_parallel_size(8, config(R"({"tensor_parallel": {"autotp_size": 4}})")), 8);
  EXPECT_EQ(data_parallel_size(8, config(R"({"tensor_parallel": {"tp": {"tp_size": 4}}})")), 8);
  EXPECT_EQ(tensor_parallelism(config(R"({"tensor_parallel": {"tp": {"tp_size": 4}}})")).size, 1) << "ignored alone";
  EXPECT_EQ(tensor_parallelism(config(R"({"tensor_parallel": {"autotp_size": 4, "tp": {"tp_size": 4}}})")).size, 4);
  EXPECT_EQ(data_parallel_size(8, config(R"({"tensor_parallel": {"autotp_size": 2}, "pipeline": {"stages": 2}})")), 4);
  EXPECT_THAT(error_of([] { data_parallel_size(8, config(R"({"tensor_parallel": {"autotp_size": 3}})")); }),
              HasSubstr("tensor-parallel size 3"));
}

TEST(DataParallelSize, DividesBySequenceParallelism) {
  EXPECT_EQ(data_parallel_size(8, config(R"({"sequence_parallel_size": 2})")), 4);
  EXPECT_EQ(data_parallel_size(8, config(R"({"sequence_parallel_size": "auto"})")), 8);
  EXPECT_EQ(data_parallel_size(8, config(R"({"sequence_parallel_size": 2, "mp_size": 2, "pipeline": {"stages": 2}})")),
            1);
  EXPECT_EQ(data_parallel_size(8, config(R"({"sequence_parallel_size": 2, "data_parallel_size": 4})")), 4);
  EXPECT_EQ(data_parallel_size(8, config(R"({"data_parallel_size": 3})")), 8) << "DeepSpeed reads it beside the other";
}

TEST(DataParallelSize, RefusesSequenceParallelismThatDoesNotFit) {
  EXPECT_THAT(error_of([] { data_parallel_size(4, config(R"({"sequence_parallel_size": 3})")); }),
              AllOf(HasSubstr("4 slots"), HasSubstr("tensor-parallel size 1"), HasSubstr("sequence_parallel_size 3"),
                    HasSubstr("pipeline.stages 1 = 3"), HasSubstr("--slots-per-trial")));
  EXPECT_THAT(error_of([] { data_parallel_size(4, config(R"({"sequence_parallel_size": 0})")); }),
              AllOf(HasSubstr("sequence_parallel_size is 0"), HasSubstr("positive integer")));
  EXPECT_THAT(
      error_of([] { data_parallel_size(4, config(R"({"sequence_parallel_size": 2, "data_parallel_size": 4})")); }),
      AllOf(HasSubstr("data_parallel_size is 4"), HasSubstr("2 = 2"), HasSubstr("--slots-per-trial")));
}

TEST(DataParallelSize, RefusesWhatDoesNotDivide) {
  EXPECT_THAT(error_of([] { data_parallel_size(6, config(R"({"mp_size": 2, "pipeline": {"stages": 2}})")); }),
              AllOf(HasSubstr("6 slots"), HasSubstr("tensor-parallel size 2"), HasSubstr("pipeline.stages 2 = 4")));
  EXPECT_THAT(error_of([] { data_parallel_size(2, config(R"({"mp_size": 4})")); }), HasSubstr("not a multiple"));
  EXPECT_THAT(error_of([] { data_parallel_size(0, config("{}")); }), HasSubstr("trial is 0"));
  EXPECT_THAT(error_of([] { data_parallel_size(8, config(R"({"mp_size": 2, "tensor_parallel": {"tp_size": 4}})")); }),
              AllOf(HasSubstr("tensor_parallel.tp_size 4"), HasSubstr("mp_size 2")));
  EXPECT_THAT(error_of([] { data_parallel_size(8, config(R"({"mp_size": -2})")); }), HasSubstr("mp_size is -2"));
  EXPECT_THAT(error_of([] { data_parallel_size(8, config(R"({"pipeline": {"stages": 0}})")); }),
              HasSubstr("pipeline.stages is 0"));
}

}  // namespace
}  // namespace dsat::config
