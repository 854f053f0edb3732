// A socket's name is dsat-slot/PID/CLAIM/BACKEND/DEVICE. /proc/net/unix lists the names of all processes, with @ for
// the zero byte at the begin of an abstract name.
#include "slots/slot_claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <set>
#include <string_view>

#include "dsat/base/split.h"
#include "slots/hostfile.h"

namespace dsat::host {
namespace {

constexpr std::string_view kListed = "@dsat-slot/";
constexpr size_t kParts = 4;  // at least, after the prefix: process, claim, backend, device

int bind_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) return -1;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  name.copy(address.sun_path + 1, name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  close(fd);
  return -1;
}

struct ListedClaim {
  std::string process, claim, backend, device;
};

// Any program may bind such a name, so a line counts only if its process is a number.
std::vector<ListedClaim> listed_claims() {
  std::vector<ListedClaim> claims;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find(kListed);
    if (begin == std::string::npos) continue;
    const std::string name = line.substr(begin + kListed.size());
    const std::vector<std::string> parts = split(name, '/');
    if (parts.size() < kParts || parts[0].empty() || parts[0].size() > 10) continue;
    if (parts[0].find_first_not_of("0123456789") != std::string::npos) continue;
    // A device's name may contain slashes.
    const size_t device = parts[0].size() + parts[1].size() + parts[2].size() + 3;
    claims.push_back({parts[0], parts[1], parts[2], name.substr(device)});
  }
  return claims;
}

// HIP and ROCr see the same devices.
std::string number_of(Backend backend) {
  return fmt::to_string(static_cast<int>(backend == Backend::rocr ? Backend::hip : backend));
}

std::string device_of(const Slot& slot) {
  if (!slot.uuid.empty()) return slot.uuid;
  return slot.ordinal ? fmt::to_string(*slot.ordinal) : slot.id;
}

}  // namespace

SlotClaim::SlotClaim(Backend backend, const std::vector<Slot>& slots) : backend_(backend) {
  static std::atomic<uint64_t> next_claim{0};
  prefix_ = fmt::format("dsat-slot/{}/{}/", getpid(), next_claim++);
  if (backend == Backend::none) return;
  for (const Slot& slot : slots) {
    if (!slot.host.empty() && !is_this_machine(slot.host)) continue;
    const std::string device = device_of(slot);
    const int fd = bind_name(fmt::format("{}{}/{}", prefix_, number_of(backend), device));
    if (fd >= 0) claimed_.push_back({device, slot.name(), fd});
  }
}

SlotClaim::~SlotClaim() {
  for (const Claimed& one : claimed_) close(one.fd);
}

std::optional<std::string> SlotClaim::notice_of_others() const {
  if (claimed_.empty()) return std::nullopt;
  std::set<std::string> names, processes;
  for (const ListedClaim& listed : listed_claims()) {
    const bool is_own = fmt::format("dsat-slot/{}/{}/", listed.process, listed.claim) == prefix_;
    if (is_own || listed.backend != number_of(backend_)) continue;
    for (const Claimed& one : claimed_) {
      if (one.device != listed.device) continue;
      names.insert(one.name);
      processes.insert(listed.process);
    }
  }
  if (names.empty()) return std::nullopt;
  return fmt::format(
      "another study runs on {} {} too (process {}): trials of both slow each other down and share the memory, so no "
      "metric is right; end one of them, or give each its own devices (--include, or the visibility variable)",
      names.size() == 1 ? "device" : "devices", fmt::join(names, ", "), fmt::join(processes, ", "));
}

}  // namespace dsat::host
