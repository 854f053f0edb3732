// Prepares the process of one rank, joins the others, runs the body, and turns every exception into one line.
// An allocation that the device refused decides the kind of failure, whatever exception came out in the end.
#include "ranks/rank_process.h"

#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <stdlib.h>

#include <exception>
#include <utility>

#include "base/error_text.h"
#include "device/cuda_support.h"
#include "device/device.h"
#include "device/device_memory.h"
#include "settings/environment.h"

namespace dsat::trainer {
namespace {

// glibc gives large blocks back to the system at once and then pays for fresh pages: every step would begin with page
// faults, as no GPU's allocator does. Keep what was taken.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

// LibTorch 2 prints a warning for each message that a lost peer did not take. The rank's own line names the cause.
void log_errors_only() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
}

RankResult failure_of(const Rendezvous& rendezvous, FailureKind kind, const std::string& message) {
  if (const auto refused = out_of_memory()) {
    return {FailureKind::out_of_memory,
            fmt::format("OutOfMemoryError: {} (rank {})", describe(*refused), rendezvous.rank)};
  }
  return {kind, fmt::format("{} (rank {})", libtorch_reason(message), rendezvous.rank)};
}

void run_to_its_end(World& world, const std::function<void(World&)>& body) {
  try {
    body(world);
  } catch (const TuningDone&) {
  }
  // Nobody leaves while another still needs it.
  synchronize(world.device());
  world.comm().barrier();
}

}  // namespace

void use_one_thread() {
  // OpenBLAS reads its environment when it is loaded, long before main; its own call works at any time.
  if (void* const set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(set)(1);
  }
  at::set_num_threads(1);
}

RankResult run_rank(const WorldOptions& options, const Json& config, const Rendezvous& rendezvous,
                    const std::function<void(World&)>& body) {
  keep_freed_memory();
  log_errors_only();
  // LibTorch makes its pool of threads again in the first thread that asks after a fork. Two that ask at once (a
  // loader's workers, the communication thread) would fail: "Invalid thread pool!". So it is made here.
  at::set_num_threads(at::get_num_threads());
  try {
    const at::Device device = open_device(options.device, local_rank_of(rendezvous.rank), options.device_memory);
    auto comm = join(rendezvous, device);
    WorldOptions own = options;
    if (device.is_cuda() && !own.device_memory) {
      own.device_memory = cuda_device_bytes(device.index()) / static_cast<uint64_t>(ranks_on_device(*comm, device));
    }
    World world(std::move(comm), std::move(own), config, device);
    run_to_its_end(world, body);
    return {};
  } catch (const PeerLost& error) {
    return failure_of(rendezvous, FailureKind::peer_lost, error.what());
  } catch (const Error& error) {
    const bool is_usage = error.code() != DSAT_INTERNAL;
    return failure_of(rendezvous, is_usage ? FailureKind::usage : FailureKind::error, error.what());
  } catch (const c10::OutOfMemoryError& error) {
    return failure_of(rendezvous, FailureKind::out_of_memory, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    // Without the C++ backtrace that LibTorch appends.
    return failure_of(rendezvous, FailureKind::error, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return failure_of(rendezvous, FailureKind::error, error_text(error));
  } catch (...) {
    return failure_of(rendezvous, FailureKind::error, "an exception that is no std::exception");
  }
}

}  // namespace dsat::trainer
