// Collectives over Gloo, and the store at which ranks meet.
//
// Gloo cannot move 16-bit brain floats; broadcasts send the bytes. Every operation is asynchronous and in place, so
// it takes no tensor memory.
#include <ATen/ops/from_blob.h>

#include <chrono>
#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/comm_c10d.h"

namespace dsat::trainer {
namespace {

struct Gloo {
  using Group = c10d::ProcessGroupGloo;

  // The same bytes without their ownership: Gloo's threads let go of a tensor a little after its work has ended, and
  // memory that is freed by another thread's clock would make the peak of a step differ from run to run.
  static at::Tensor borrow(const at::Tensor& tensor) {
    if (tensor.scalar_type() == at::kBFloat16) {
      return at::from_blob(tensor.data_ptr(), {tensor.numel() * 2}, at::TensorOptions().dtype(at::kByte));
    }
    return at::from_blob(tensor.data_ptr(), {tensor.numel()}, tensor.options());
  }
  c10::intrusive_ptr<Group> make_group(const Store& store, int rank, int size) const {
    auto options = Group::Options::create();
    options->devices = {is_loopback ? Group::createDeviceForInterface("lo") : Group::createDefaultDevice()};
    return c10::make_intrusive<Group>(store, rank, size, options);
  }

  static void let_go(c10::intrusive_ptr<Group>) {}

  bool is_loopback;
};

// Builds of LibTorch 2 may lack libuv, which they ask for unless told otherwise.
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
    if (r.rank != 0) throw PeerLost(std::string("cannot meet rank 0: ") + error.what());
    const std::string where = r.address + ":" + std::to_string(r.port);
    // c10d's own text names every address family that it tried, over several lines.
    if (std::strstr(error.what(), "already in use") != nullptr || std::strstr(error.what(), "EADDRINUSE") != nullptr) {
      throw Error(DSAT_INTERNAL,
                  "cannot listen on " + where + ": Address already in use (EADDRINUSE); set MASTER_PORT");
    }
    const std::string text = error.what();
    throw Error(DSAT_INTERNAL, "cannot meet the other ranks at " + where + ": " + text.substr(0, text.find('\n')));
  }
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// A connection of its own: one that is in use by a collective may wait for long.
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
    store_->get(name);  // the answer tells that it has arrived
  }
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

// Where this process has joined the others.
struct Meeting {
  Store store;
  std::unique_ptr<PeerWatch> watch;
};

Meeting& meeting() {
  static Meeting* const instance = new Meeting;
  return *instance;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.compare(0, 4, "127.") == 0;
}

}  // namespace

const Store& meeting_store() { return meeting().store; }

std::unique_ptr<Comm> join_gloo(const Rendezvous& r) {
  meeting().store = open_store(r);
  if (r.on_cause_of_others) {
    meeting().watch = as_peer_lost([&] {
      return std::make_unique<PeerWatch>(std::make_unique<StoreNotes>(r), r.rank, r.world_size, r.on_cause_of_others);
    });
  }
  return std::make_unique<C10dComm<Gloo>>(Gloo{is_loopback(r.address)}, meeting().store, r.rank, r.world_size);
}

void wait_for_cause() {
  if (meeting().watch) meeting().watch->wait_for_cause();
}

void leave_others(const std::optional<Cause>& own) {
  if (meeting().watch) meeting().watch->leave(own);
}

}  // namespace dsat::trainer
