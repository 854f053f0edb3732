// Reserves addresses without access, and looks a fault's address up among them.
#include "autograd/absent_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "watch/last_words.h"

namespace dsat::trainer {

// What the handler reads. Never destroyed: a fault may come while the process ends.
struct Ranges {
  static std::vector<const AbsentMemory*>& all() {
    static auto* const instance = new std::vector<const AbsentMemory*>;
    return *instance;
  }
  static inline struct sigaction before {};

  static void on_fault(int signal, siginfo_t* info, void*) {
    const auto* const at = static_cast<const char*>(info->si_addr);
    for (const AbsentMemory* range : all()) {
      const auto* const begin = static_cast<const char*>(range->data_);
      if (at < begin || at >= begin + range->bytes_) continue;
      for (const AbsentMemory::Part& part : range->parts_) {
        if (at < begin + part.end) end_with(part.text.data(), part.text.size());
      }
    }
    ::sigaction(signal, &before, nullptr);  // the access is made again, and now ends as it would have ended
  }
};

AbsentMemory::AbsentMemory(std::vector<Part> parts) : parts_(std::move(parts)) {
  bytes_ = std::max<size_t>(1, parts_.empty() ? 0 : parts_.back().end);
  void* const got = ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return;
  data_ = got;
  if (Ranges::all().empty()) {
    struct sigaction action {};
    action.sa_sigaction = &Ranges::on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &Ranges::before);
  }
  Ranges::all().push_back(this);
}

AbsentMemory::~AbsentMemory() {
  if (data_ == nullptr) return;
  auto& all = Ranges::all();
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
  if (all.empty()) ::sigaction(SIGSEGV, &Ranges::before, nullptr);
  ::munmap(data_, bytes_);
}

}  // namespace dsat::trainer
