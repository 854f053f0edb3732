// DSAT_PLUGIN(A, B, ...) makes the enclosing library a dsat plugin with these searchers and profilers. dsat/searcher.h
// includes this file. No exception leaves the C functions: it becomes an error with a message.
#ifndef DSAT_PLUGIN_H_
#define DSAT_PLUGIN_H_

#include <cstring>
#include <exception>
#include <type_traits>
#include <vector>

#include "dsat/searcher.h"

namespace dsat {
namespace detail {

// Runs `body`. An exception becomes a status, and the host gets its message.
template <class Body>
dsat_status guarded(const dsat_host* host, Body&& body) noexcept {
  dsat_status code = DSAT_INTERNAL;
  const char* message = "unknown exception (not derived from std::exception)";
  try {
    body();
    return DSAT_OK;
  } catch (const Error& e) {
    if (e.code() != DSAT_OK) code = e.code();
    host->set_error(host, str(e.what()));
    return code;
  } catch (const std::exception& e) {
    host->set_error(host, str(e.what()));
    return code;
  } catch (...) {
    host->set_error(host, str(message));
    return code;
  }
}

// Has T a public, unambiguous `save` and `restore`?
template <class T, class = void>
struct OffersSave : std::false_type {};
template <class T>
struct OffersSave<T, std::void_t<decltype(&T::save)>> : std::true_type {};
template <class T, class = void>
struct OffersRestore : std::false_type {};
template <class T>
struct OffersRestore<T, std::void_t<decltype(&T::restore)>> : std::true_type {};

// Has T any member of that name, private or inherited? A class that derives from T and from NamesSave has two of them
// if so, and then the name is ambiguous. A final class has no derived class, so a private member of it is not found.
struct NamesSave {
  int save;
};
struct NamesRestore {
  int restore;
};
struct Nothing {};
template <class T, class Names>
struct WithNames : std::conditional_t<std::is_final_v<T>, Nothing, T>, Names {};
template <class T, class = void>
struct HasSave : std::true_type {};
template <class T>
struct HasSave<T, std::void_t<decltype(&WithNames<T, NamesSave>::save)>> : OffersSave<T> {};
template <class T, class = void>
struct HasRestore : std::true_type {};
template <class T>
struct HasRestore<T, std::void_t<decltype(&WithNames<T, NamesRestore>::restore)>> : OffersRestore<T> {};

template <class T>
inline constexpr bool kSavesState = std::conjunction_v<OffersSave<T>, OffersRestore<T>>;
// A class needs both or neither: with one alone, or a private one, its state would be lost silently.
template <class T>
inline constexpr bool kStateIsWhole = kSavesState<T> || (!HasSave<T>::value && !HasRestore<T>::value);

// One strategy: the C vtable and the author's object.
template <class T>
class Instance {
  static_assert(kStateIsWhole<T>,
                "a searcher or profiler has both `std::string save() const` and `void restore(const dsat::Study&, "
                "std::string_view)`, public and each once, or neither of them; inherited ones and those of another "
                "signature count: rename what serves something else");

 public:
  Instance(const dsat_host* host, Json options) : host_(host), object_(Host(host), Options(std::move(options))) {
    vtable_.struct_size = sizeof(dsat_strategy);
    vtable_.reserved = 0;
    vtable_.plugin_data = this;
    vtable_.start = [](dsat_strategy* s, const dsat_study* study) noexcept {
      return call(s, [&](T& object) { object.start(Study::from(*study)); });
    };
    vtable_.on_result = [](dsat_strategy* s, const dsat_result* result) noexcept {
      return call(s, [&](T& object) { object.on_result(Result(*result)); });
    };
    vtable_.on_trial_exited = [](dsat_strategy* s, const dsat_exit* exit) noexcept {
      return call(s, [&](T& object) { object.on_trial_exited(Exit(*exit)); });
    };
    vtable_.restore = nullptr;
    vtable_.save = nullptr;
    if constexpr (kSavesState<T>) {
      vtable_.restore = [](dsat_strategy* s, const dsat_study* study, dsat_str state) noexcept {
        return call(s, [&](T& object) { object.restore(Study::from(*study), view(state)); });
      };
      vtable_.save = [](dsat_strategy* s, const dsat_sink* sink) noexcept {
        return call(s, [&](T& object) {
          const std::string state = object.save();
          const dsat_status status = sink->write(sink, state.data(), state.size());
          if (status != DSAT_OK) throw Error(status, "the host could not store the state");
        });
      };
    }
    vtable_.destroy = [](dsat_strategy* s) noexcept { delete static_cast<Instance*>(s->plugin_data); };
  }
  dsat_strategy* vtable() { return &vtable_; }

 private:
  template <class Body>
  static dsat_status call(dsat_strategy* s, Body&& body) noexcept {
    Instance* self = static_cast<Instance*>(s->plugin_data);
    return guarded(self->host_, [&] { body(self->object_); });
  }

  dsat_strategy vtable_{};
  const dsat_host* host_;
  T object_;
};

// T's descriptor. It lives as long as the library.
template <class T>
const dsat_descriptor* descriptor() noexcept {
  struct Storage {
    Descriptor text = T::descriptor();
    std::string options_json, study_json;
    dsat_descriptor raw{};
    // A byte that is not UTF-8 becomes U+FFFD. An exception of dump() would end the process here.
    static std::string readable(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
    Storage() {
      Json options = Json::array();
      for (const OptionSpec& option : text.options) options.push_back(option.json());
      options_json = readable(options);
      study_json = readable(text.study);
      raw = {sizeof(dsat_descriptor), text.state_version,
             text.id.c_str(),         text.name.c_str(),
             text.version.c_str(),    text.summary.c_str(),
             options_json.c_str(),    text.study.is_null() ? nullptr : study_json.c_str()};
    }
  };
  static const Storage storage;
  return &storage.raw;
}

template <class T>
dsat_status create(const dsat_host* host, dsat_str options_json, dsat_strategy** out) noexcept {
  return guarded(host, [&] { *out = (new Instance<T>(host, Json::parse(view(options_json))))->vtable(); });
}

// The factories of the classes Ts, one table a kind. The tables are built once, so threads may share them.
template <class... Ts>
class Factories {
 public:
  static const void* get(const char* factory_id) noexcept {
    if (std::strcmp(factory_id, DSAT_SEARCHER_FACTORY) == 0) return of<0>();
    if (std::strcmp(factory_id, DSAT_PROFILER_FACTORY) == 0) return of<1>();
    return nullptr;
  }

 private:
  struct Entry {
    const dsat_descriptor* descriptor;
    dsat_status (*create)(const dsat_host*, dsat_str, dsat_strategy**) noexcept;
  };
  template <int Kind>
  struct Table {
    std::vector<Entry> entries;
    dsat_factory factory{};

    explicit Table(const char* kind) {
      ((std::strcmp(Ts::kFactoryId, kind) == 0 ? entries.push_back({descriptor<Ts>(), &create<Ts>}) : void()), ...);
      factory = {
          sizeof(dsat_factory), static_cast<uint32_t>(entries.size()),
          [](uint32_t index) noexcept -> const dsat_descriptor* {
            const Table& all = table<Kind>();
            return index < all.entries.size() ? all.entries[index].descriptor : nullptr;
          },
          [](const char* id, const dsat_host* host, dsat_str options, dsat_strategy** out) noexcept -> dsat_status {
            for (const Entry& entry : table<Kind>().entries) {
              if (std::strcmp(entry.descriptor->id, id) == 0) return entry.create(host, options, out);
            }
            host->set_error(host, str(std::string("no strategy '") + id + "' in this plugin"));
            return DSAT_NOT_FOUND;
          }};
    }
  };

  template <int Kind>
  static const Table<Kind>& table() {
    static const Table<Kind> instance(Kind == 0 ? DSAT_SEARCHER_FACTORY : DSAT_PROFILER_FACTORY);
    return instance;
  }

  template <int Kind>
  static const dsat_factory* of() noexcept {
    const Table<Kind>& t = table<Kind>();
    return t.entries.empty() ? nullptr : &t.factory;
  }
};

}  // namespace detail
}  // namespace dsat

#define DSAT_PLUGIN(...)                                                     \
  extern "C" DSAT_EXPORT const dsat_plugin_entry dsat_plugin_entry_v1 = {    \
      DSAT_MAGIC, sizeof(dsat_plugin_entry), DSAT_ABI_MAJOR, DSAT_ABI_MINOR, \
      [](const char* factory_id) noexcept { return ::dsat::detail::Factories<__VA_ARGS__>::get(factory_id); }}

#endif  // DSAT_PLUGIN_H_
