// Collectives between real processes over Gloo and shared memory, and sums of 16-bit gradients on top of them.
// A rank reports what it found wrong through its result.
#include "dsat/trainer/comm.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/comm_thread.h"
#include "comm/rendezvous.h"
#include "ranks/launcher.h"
#include "support/error_of.h"
#include "trainer/on_ranks.h"
#include "zero/reducer.h"

namespace dsat::trainer {
namespace {

using ::testing::HasSubstr;

at::Tensor filled(int64_t size, double value, at::ScalarType dtype = at::kFloat) {
  return at::full({size}, value, at::TensorOptions().dtype(dtype));
}

bool is_all(const at::Tensor& tensor, double value) {
  return tensor.equal(filled(tensor.numel(), value, tensor.scalar_type()));
}

TEST(CommTest, SumsAndBroadcastsReachTheirRanks) {
  const RankResult result = on_ranks(3, [](Comm& comm) -> std::string {
    const double mine = comm.rank() + 1;
    const at::Tensor all = filled(5, mine), one = filled(1000, mine), sent = filled(7, mine, at::kBFloat16);
    std::vector<std::unique_ptr<Pending>> pending;
    pending.push_back(comm.all_reduce_sum(all));
    pending.push_back(comm.reduce_sum(one, 2));
    pending.push_back(comm.broadcast(sent, 1));
    wait_all(pending);
    if (!is_all(all, 6)) return "all_reduce_sum";
    if (comm.rank() == 2 && !is_all(one, 6)) return "reduce_sum";
    if (!is_all(sent, 2)) return "broadcast of bf16";
    return pending.empty() ? "" : "wait_all keeps what has ended";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(CommTest, NumbersCombineOverRanks) {
  const RankResult result = on_ranks(3, [](Comm& comm) -> std::string {
    const double mine = comm.rank();
    if (sum_over_ranks(comm, {mine, 10}) != std::vector<double>{3, 30}) return "sum";
    if (max_over_ranks(comm, {mine, -mine}) != std::vector<double>{2, 0}) return "max";
    return sum_over_ranks(comm, {}).empty() ? "" : "nothing is not nothing";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(CommTest, ARankThatLeavesIsAPeerLostToTheOthers) {
  const RankResult result = without_rank_1([](Comm& comm) { comm.all_reduce_sum(filled(10, 1))->wait(); });
  EXPECT_EQ(result.kind, FailureKind::error);
  EXPECT_THAT(result.message, HasSubstr("lost another rank"));
}

TEST(CommTest, TensorsGoFromOneRankToAnotherInTheirOrder) {
  const RankResult result = on_ranks(3, [](Comm& comm) -> std::string {
    const int next = (comm.rank() + 1) % 3, previous = (comm.rank() + 2) % 3;
    const at::Tensor first = filled(1000, comm.rank()), second = filled(9, comm.rank() + 10, at::kBFloat16);
    const at::Tensor got_first = filled(1000, -1), got_second = filled(9, -1, at::kBFloat16);
    std::vector<std::unique_ptr<Pending>> pending;
    pending.push_back(comm.send(first, next));
    pending.push_back(comm.send(second, next));
    pending.push_back(comm.recv(got_first, previous));
    pending.push_back(comm.recv(got_second, previous));
    wait_all(pending);
    if (!is_all(got_first, previous)) return "first";
    return is_all(got_second, previous + 10) ? "" : "second";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// Two pipelines of two stages: ranks 0, 2 and 1, 3 sum, then send within a group in reversed order.
TEST(CommTest, GroupsThatAreSplitOffDoNotMix) {
  const RankResult result = on_ranks(4, [](Comm& comm) -> std::string {
    const int parity = comm.rank() % 2;
    const auto pair = comm.split({parity + 2, parity});
    if (pair->size() != 2 || pair->rank() != (comm.rank() < 2 ? 1 : 0)) return "rank in the pair";
    const auto twin = comm.split({parity + 2, parity}), self = comm.split({comm.rank()});
    const at::Tensor sum = filled(10, comm.rank()), other = filled(10, 1), sent = filled(10, comm.rank());
    // Opposite orders in two groups of the same ranks.
    std::vector<std::unique_ptr<Pending>> pending;
    for (const bool main_first : {comm.rank() < 2, comm.rank() >= 2}) {
      pending.push_back(main_first ? pair->all_reduce_sum(sum) : twin->all_reduce_sum(other));
    }
    wait_all(pending);
    const auto moved = pair->rank() == 0 ? pair->send(sent, 1) : pair->recv(sent, 0);
    moved->wait();
    if (!is_all(sum, 2 * parity + 2)) return "sum in the pair";
    if (!is_all(other, 2)) return "sum in its twin";
    if (!is_all(sent, parity + 2)) return "sent in the pair";
    return self->size() == 1 ? "" : "alone";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(CommTest, AGroupOfWrongRanksIsNamed) {
  const auto comm = join({});
  EXPECT_THAT(error_of([&] { comm->split({1}); }), HasSubstr("split(1)"));
  EXPECT_THAT(error_of([&] { comm->split({}); }), HasSubstr("by rank 0"));
  EXPECT_THAT(error_of([&] { comm->split({0, 0}); }), HasSubstr("named twice"));
  EXPECT_THAT(error_of([&] { comm->send(filled(1, 1), 1); }), HasSubstr("no rank 1"));
}

TEST(CommTest, OneRankAloneNeedsNoTransport) {
  const auto comm = join({0, 1, "nowhere", 0});
  EXPECT_EQ(comm->size(), 1);
  EXPECT_EQ(comm->all_reduce_sum(filled(1, 1)), nullptr);
  EXPECT_EQ(max_over_ranks(*comm, {1, 2}), (std::vector<double>{1, 2}));
}

class ReducerTest : public ::testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Both, ReducerTest, ::testing::Values(Transport::shared_memory, Transport::gloo));

TEST_P(ReducerTest, SumsOfBf16AreRoundedOnce) {
  for (const bool overlap : {false, true}) {
    const auto body = [overlap](Comm& comm) -> std::string {
      Settings settings;
      settings.reduce_bucket = 64;
      settings.overlap_comm = overlap;
      const Layout layout({{zeros("p", {300})}}, comm.size());
      const Partition partition = Partition::contiguous(layout);
      CommThread thread(comm.split({0, 1, 2}));
      Reducer reducer({settings, layout, partition, thread.comm(), thread, at::kCPU, at::kBFloat16, 1});
      reducer.begin_step();
      // 256 + 1 + 1: rounded after each addition it would stay 256.
      const at::Tensor to_one = filled(300, comm.rank() == 0 ? 256 : 1, at::kBFloat16), to_all = to_one.clone();
      const auto pending = reducer.start("sums", {{to_one, 1}, {to_all}});
      if (pending != nullptr) pending->wait();
      if (!is_all(to_all, 258)) return "to all";
      if (comm.rank() == 1 && !is_all(to_one, 258)) return "to its owner";
      return comm.rank() == 1 || is_all(to_one, comm.rank() == 0 ? 256 : 1) ? "" : "another rank's copy has changed";
    };
    const RankResult result = on_ranks(3, body, GetParam());
    EXPECT_EQ(result.kind, FailureKind::none) << result.message << (overlap ? " (beside the computation)" : "");
  }
}

}  // namespace
}  // namespace dsat::trainer
