// Loads a user's library, compares versions before anything else in it is used, and makes its trial.
// What the trial's constructor throws gets the trial's name in front.
#include "trial/trial_library.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "base/error_text.h"

namespace dsat::trainer {
namespace {

static_assert(std::string_view(DSAT_TRAINER_VERSION) == DSAT_PROJECT_VERSION,
              "trial.h names another version than CMake");

std::string describe(const TrialVersions& versions) {
  return fmt::format("dsat {} and LibTorch {}", versions.dsat, versions.libtorch);
}

void* load(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(fmt::format("--trial {}: no such file; name a trial's library", path));
  }
  // Absolute: a bare name would be looked for where the system's libraries are.
  void* const library = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  throw Error(fmt::format("--trial {}: cannot be loaded: {}; build it with this dsat's headers", path, ::dlerror()));
}

}  // namespace

TrialLibrary::TrialLibrary(const std::string& path) {
  void* const library = load(path);
  const auto entry = reinterpret_cast<const TrialEntry* (*)()>(::dlsym(library, kTrialEntry));
  if (entry == nullptr) {
    throw Error(
        fmt::format("--trial {}: has no {}: put DSAT_TRIAL(YourTrial) into one of its sources", path, kTrialEntry));
  }
  entry_ = entry();
  const std::string theirs = describe(entry_->versions), ours = describe(TrialVersions());
  if (theirs != ours) {
    throw Error(fmt::format("--trial {}: was built with {}, this is {}: build it again", path, theirs, ours));
  }
}

std::unique_ptr<Trial> TrialLibrary::make(TrialContext& context) const {
  const std::string where = fmt::format("the constructor of {}: ", name());
  try {
    return entry_->make(context);
  } catch (const PeerLost&) {
    throw;  // a consequence of another rank's failure
  } catch (const TuningDone&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), where + error.what());
  } catch (const c10::Error& error) {
    throw Error(DSAT_INTERNAL, where + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw Error(DSAT_INTERNAL, where + error_text(error));
  } catch (...) {
    throw Error(DSAT_INTERNAL, where + "threw something that is no std::exception");
  }
}

}  // namespace dsat::trainer
