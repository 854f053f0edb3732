// Collectives over Gloo, the store at which ranks meet, and the notes that ranks of other launchers leave there.
// Every operation is in place, so it takes no tensor memory. Gloo cannot move 16-bit brain floats: their bytes are
// sent. Sums are a reduce-scatter made of messages: each rank sends to each root what is for that root, which is less
// than Gloo's own reductions send, and bf16 as such.
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/comm_c10d.h"
#include "comm/rank_sums.h"

namespace dsat::trainer {
namespace {

struct Gloo {
  using Group = c10d::ProcessGroupGloo;

  // The same bytes without their ownership. Gloo's threads drop a tensor a little after its work has ended: memory that
  // they would free at that time would make the peak of a step differ from run to run.
  static at::Tensor borrow(const at::Tensor& tensor) {
    if (tensor.scalar_type() == at::kBFloat16) {
      return at::from_blob(tensor.data_ptr(), {tensor.numel() * 2}, at::TensorOptions().dtype(at::kByte));
    }
    return at::from_blob(tensor.data_ptr(), {tensor.numel()}, tensor.options());
  }
  // By default Gloo takes the address of the host's name, which ranks that meet over loopback need not be able to
  // reach.
  c10::intrusive_ptr<Group> make_group(const Store& store, int rank, int size) const {
    auto options = Group::Options::create();
    options->devices = {is_loopback ? Group::createDeviceForInterface("lo") : Group::createDefaultDevice()};
    return c10::make_intrusive<Group>(store, rank, size, options);
  }

  static void let_go(c10::intrusive_ptr<Group>) {}  // its destructor may close connections at once

  bool is_loopback;
};

class GlooComm : public C10dComm<Gloo> {
 public:
  using C10dComm::C10dComm;
  bool sums_bfloat16() const override { return true; }

  // What all are to have is summed in as many pieces as there are ranks, and each rank sends its piece round.
  void sum(const std::vector<Summand>& summands) override {
    std::vector<Summand> cut;
    for (const Summand& summand : summands) {
      if (summand.root != Summand::kAllRanks) {
        cut.push_back(summand);
        continue;
      }
      for_each_piece(summand.tensor, [&](const at::Tensor& piece, int root) { cut.push_back({piece, root}); });
    }
    sum_at_roots(cut);
    std::vector<std::unique_ptr<Pending>> pending;
    for (const Summand& summand : summands) {
      if (summand.root != Summand::kAllRanks) continue;
      for_each_piece(summand.tensor,
                     [&](const at::Tensor& piece, int root) { pending.push_back(broadcast(piece, root)); });
    }
    wait_all(pending);
  }
  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override { return split_as<GlooComm>(ranks); }

 private:
  static constexpr size_t kRoundBytes = size_t{1} << 23;

  template <typename Call>
  void for_each_piece(const at::Tensor& tensor, Call call) const {
    const int64_t most = (tensor.numel() + size() - 1) / size();
    for (int root = 0; root * most < tensor.numel(); ++root) {
      call(tensor.narrow(0, root * most, std::min(most, tensor.numel() - root * most)), root);
    }
  }

  // In each round a root receives the other ranks' parts beside its own, no more than a round's bytes in all; this
  // memory is the transport's, not a device's.
  void sum_at_roots(const std::vector<Summand>& summands) {
    RankSums sums(summands, kRoundBytes, kRoundBytes / static_cast<size_t>(size()));
    for (std::vector<SumPart> parts = sums.next(); !parts.empty(); parts = sums.next()) {
      std::vector<std::unique_ptr<Pending>> pending;
      const auto [begin, stride] = span_of_own(parts);
      received_.resize(std::max(received_.size(), stride * static_cast<size_t>(size())));
      const auto from = [&, begin = begin, stride = stride](int rank, const SumPart& part) {
        return received_.data() + static_cast<size_t>(rank) * stride + part.offset - begin;
      };
      for (const SumPart& part : parts) {
        if (part.root != rank()) {
          pending.push_back(send(part.values, part.root));
          continue;
        }
        for (int other = 0; other < size(); ++other) {
          if (other == rank()) continue;
          pending.push_back(recv(at::from_blob(from(other, part), part.values.sizes(), part.values.options()), other));
        }
      }
      wait_all(pending);
      for (const SumPart& part : parts) {
        if (part.root != rank()) continue;
        std::vector<const void*> sources;
        for (int other = 0; other < size(); ++other) sources.push_back(from(other, part));
        sources[static_cast<size_t>(rank())] = part.values.data_ptr();
        add_in_order(sources, part.values);
      }
    }
  }

  // The first byte of the parts whose root this rank is, and how many they are, in whole cache lines.
  std::pair<size_t, size_t> span_of_own(const std::vector<SumPart>& parts) const {
    constexpr size_t kLine = 64;
    size_t begin = 0, end = 0;
    for (const SumPart& part : parts) {
      if (part.root != rank()) continue;
      if (end == 0) begin = part.offset;
      end = part.offset + part.values.nbytes();
    }
    return {begin, (end - begin + kLine - 1) / kLine * kLine};
  }

  std::vector<char> received_;  // what the ranks sent in a round; empty until the first sum
};

// Some builds of LibTorch 2 lack libuv, but ask for it by default. Older options have no such field: the overload that
// takes a long is for them.
template <typename Options>
auto without_libuv(Options& options, int) -> decltype(options.useLibUV, void()) {
  options.useLibUV = false;
}
template <typename Options>
void without_libuv(Options&, long) {}

Store open_store(const Rendezvous& r) {
  c10d::TCPStoreOptions options;
  options.port = r.port;
  options.isServer = r.rank == 0;
  options.numWorkers = static_cast<size_t>(r.world_size);
  without_libuv(options, 0);
  try {
    return c10::make_intrusive<c10d::TCPStore>(r.address, options);
  } catch (const std::exception& error) {
    // Only the rank that serves can be the cause; the others wait for it in vain.
    const std::string reason = reason_in(error.what());
    if (r.rank != 0) throw PeerLost(fmt::format("cannot meet rank 0 at {}:{}: {}", r.address, r.port, reason));
    // c10d's own text names every address family that it tried, over several lines.
    if (std::strstr(error.what(), "already in use") != nullptr || std::strstr(error.what(), "EADDRINUSE") != nullptr) {
      throw Error(DSAT_INTERNAL,
                  fmt::format("cannot listen on {}:{}: Address already in use (EADDRINUSE); set MASTER_PORT", r.address,
                              r.port));
    }
    throw Error(DSAT_INTERNAL, fmt::format("cannot meet the other ranks at {}:{}: {}", r.address, r.port, reason));
  }
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// The watch's notes (peer_watch.h) as keys of the store. It has a connection of its own, because one that a collective
// uses may wait for long.
class StoreNotes : public Notes {
 public:
  explicit StoreNotes(const Rendezvous& r) {
    c10d::TCPStoreOptions options;
    options.port = r.port;
    options.waitWorkers = false;
    options.timeout = RankWatch::kSilence;
    without_libuv(options, 0);
    store_ = c10::make_intrusive<c10d::TCPStore>(r.address, options);
  }
  void write(const std::string& name, const std::string& text) override {
    store_->set(name, bytes_of(text));
    store_->get(name);  // set() does not wait: the answer to get() shows that the note has arrived
  }
  // compareSet sets a key that is not there when the expected text is empty.
  void write_first(const std::string& name, const std::string& text) override {
    store_->compareSet(name, bytes_of(""), bytes_of(text));
  }
  std::optional<std::string> read(const std::string& name) override {
    if (!store_->check({name})) return std::nullopt;
    const std::vector<uint8_t> text = store_->get(name);
    return std::string(text.begin(), text.end());
  }

 private:
  Store store_;
};

// What a process has from the moment that it joins the others until its end; never destroyed, because communication
// threads may still use it then. The watch is there only without a launcher of ours (Rendezvous::on_cause_of_others).
struct Joined {
  Store store;
  std::unique_ptr<PeerWatch> watch;
};

Joined& joined() {
  static Joined* const instance = new Joined;
  return *instance;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.compare(0, 4, "127.") == 0;
}

}  // namespace

const Store& rendezvous_store() { return joined().store; }

// The watch starts before the group is made: a rank that dies while the others connect is then noticed as well.
std::unique_ptr<Comm> join_gloo(const Rendezvous& r) {
  joined().store = open_store(r);
  if (r.on_cause_of_others) {
    joined().watch = as_peer_lost([&] {
      return std::make_unique<PeerWatch>(std::make_unique<StoreNotes>(r), r.rank, r.world_size, r.on_cause_of_others);
    });
  }
  return std::make_unique<GlooComm>(Gloo{is_loopback(r.address)}, joined().store, r.rank, r.world_size);
}

void wait_for_cause() {
  if (joined().watch) joined().watch->wait_for_cause();
}

void leave_others(const std::optional<Cause>& own) {
  if (joined().watch) joined().watch->leave(own);
}

}  // namespace dsat::trainer
