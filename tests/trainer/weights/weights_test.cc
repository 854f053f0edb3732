// Files of weights: what was written is read again, and what is damaged is named.
// What Python makes of them is tested end to end.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/error_of.h"
#include "support/temp_dir.h"
#include "weights/check_weights.h"
#include "weights/torch_pickle.h"
#include "weights/weight_reader.h"
#include "weights/weight_writer.h"

namespace dsat::trainer {
namespace {

using ::testing::HasSubstr;

std::vector<WeightSpec> specs() {
  return {{"a.weight", {2, 3}, at::kFloat, {"b.weight"}},
          {"steps", {}, at::kLong, {}},
          {"half", {4}, at::kBFloat16, {}},
          {"empty", {0, 5}, at::kFloat, {}}};
}

std::vector<at::Tensor> values() {
  return {at::arange(6, at::kFloat).view({2, 3}), at::full({}, 9, at::kLong),
          at::arange(4, at::kFloat).to(at::kBFloat16), at::ones({0, 5})};
}

void write(const std::string& file) {
  const auto writer = open_weight_writer(file, specs());
  for (const at::Tensor& tensor : values()) writer->write(tensor);
  writer->finish();
}

class Weights : public ::testing::TestWithParam<const char*> {
 protected:
  std::string file() const { return (folder_.path() / (std::string("weights.") + GetParam())).string(); }
  TempDir folder_;
};
INSTANTIATE_TEST_SUITE_P(Formats, Weights, ::testing::Values("pt", "safetensors"));

TEST_P(Weights, AreReadAsTheyWereWritten) {
  write(file());
  const auto reader = open_weight_reader(file());
  EXPECT_EQ(reader->specs().size(), 5u);
  for (size_t i = 0; i < specs().size(); ++i) {
    EXPECT_TRUE(reader->read(specs()[i].name).equal(values()[i])) << specs()[i].name;
  }
  EXPECT_TRUE(reader->read("b.weight").equal(values()[0]));
  EXPECT_TRUE(check_weights(file(), reader->specs(), specs()).empty());
}

// Byte by byte: no cut is taken for a whole file, and none ends the program.
TEST_P(Weights, ThatAreTruncatedAreRefused) {
  write(file());
  const std::string whole = read_text(file());
  for (size_t size = 0; size < whole.size(); size += 7) {
    write_text(file(), whole.substr(0, size));
    const std::string text = error_of([&] {
      const auto reader = open_weight_reader(file());
      for (const WeightSpec& spec : reader->specs()) reader->read(spec.name);
    });
    EXPECT_THAT(text, HasSubstr("weights.")) << size << " bytes";
  }
}

TEST_P(Weights, LeaveTheOldFileWhereTheNewOneCannotBeFinished) {
  write_text(file(), "old");
  { const auto unfinished = open_weight_writer(file(), specs()); }
  EXPECT_EQ(read_text(file()), "old");
  std::vector<WeightSpec> too_large = specs();
  too_large[0].shape = {int64_t{1} << 30, int64_t{1} << 25};
  EXPECT_THAT(error_of([&] { open_weight_writer(file(), too_large); }, DSAT_INTERNAL), HasSubstr("are free there"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_P(Weights, InAFolderThatIsNotThereAreNamed) {
  EXPECT_THAT(
      error_of([&] { open_weight_writer("/nowhere/weights." + std::string(GetParam()), specs()); }, DSAT_INTERNAL),
      HasSubstr("/nowhere/weights."));
}

TEST(WeightNames, ThatDifferAreNamed) {
  EXPECT_THAT(error_of([] { check_weights("f", {{"a", {2}}}, {{"a", {3}}}); }), HasSubstr("f: a has the shape [2]"));
  EXPECT_THAT(error_of([] {
                check_weights("f", {{"net.a", {2}}}, {{"a", {2}}});
              }),
              HasSubstr("f has no a; the nearest name there is net.a"));
  EXPECT_THAT(check_weights("f", {{"a", {2}}, {"more", {2}}}, {{"a", {2}}}), ::testing::ElementsAre("more"));
  EXPECT_THAT(error_of([] { check_weights_name("weights.bin"); }), HasSubstr(".safetensors"));
}

// A pickle from a stranger: every cut and every changed byte is an error or a dict, and nothing else.
TEST(TorchPickle, SurvivesDamage) {
  const std::string whole = pickle_state_dict({{specs()[0], "0", 6, 0, {3, 1}}});
  ASSERT_EQ(unpickle_state_dict(whole).size(), 2u);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(error_of([&] { unpickle_state_dict(whole.substr(0, i)); }), "");
    for (const char byte : {'\0', '\xff', '(', 't', 'R'}) {
      std::string changed = whole;
      changed[i] = byte;
      error_of([&] { unpickle_state_dict(changed); });
    }
  }
}

}  // namespace
}  // namespace dsat::trainer
