// Trains a small model with dsat's native trainer and the fault that --fault names; faults.py runs it.
//
// Faults are put around the trainer, none into it: into the group of ranks that it is given, the configuration, samples
// and losses, gradients on their way, and parameters between steps. --list prints their names.
#include <fmt/format.h>
#include <torch/torch.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <map>

#include "dsat/trainer/engine.h"

namespace {

using dsat::Json;
using dsat::trainer::Comm;
using dsat::trainer::Pending;
using dsat::trainer::Summand;
using dsat::trainer::World;
using torch::Tensor;

// The step and bucket at which the trainer is. Its communication thread reads them, too.
struct Place {
  int rank = 0, ranks = 0;
  std::atomic<int64_t> step{0}, bucket{0};  // the bucket of the micro step
  std::atomic<bool> is_updating{false};
};

Tensor few_bits(const Tensor& values) {
  const Tensor largest = values.abs().max().clamp_min(1e-30);
  return (values / largest * 8).round() * largest / 8;
}

using Change = std::function<void(const Tensor&, const Place&)>;

// Faults in the values that a rank gives into the sum of a bucket of gradients.
const std::map<std::string, Change> kGiven = {
    {"a rank's gradients are left out",
     [](const Tensor& t, const Place& at) {
       if (at.rank == 1) t.zero_();
     }},
    {"a rank's gradients count twice",
     [](const Tensor& t, const Place& at) {
       if (at.rank == 1) t.mul_(2);
     }},
    {"a rank's gradients have the other sign",
     [](const Tensor& t, const Place& at) {
       if (at.rank == 1) t.neg_();
     }},
    {"the first bucket is lost",
     [](const Tensor& t, const Place& at) {
       if (at.bucket == 0) t.zero_();
     }},
    {"the second bucket is lost",
     [](const Tensor& t, const Place& at) {
       if (at.bucket == 1) t.zero_();
     }},
    {"a bucket is lost on odd steps",
     [](const Tensor& t, const Place& at) {
       if (at.step % 2) t.zero_();
     }},
    {"half of each bucket is lost", [](const Tensor& t, const Place&) { t.narrow(0, 0, t.numel() / 2).zero_(); }},
    {"a bucket is shifted by one element", [](const Tensor& t, const Place&) { t.copy_(t.roll(1)); }},
    {"sums have four bits", [](const Tensor& t, const Place&) { t.copy_(few_bits(t)); }},
    {"sums have noise of 5 %", [](const Tensor& t, const Place&) { t.mul_(1 + 0.05 * torch::randn_like(t)); }},
    {"gradients are stale by a step",
     [](const Tensor& t, const Place& at) {
       static std::map<std::pair<int64_t, const void*>, Tensor> last;
       Tensor& old = last[{at.bucket, t.data_ptr()}];
       const Tensor given = t.clone();
       if (old.defined()) t.copy_(old);
       old = given;
     }},
};

// Faults in the sum.
const std::map<std::string, Change> kSummed = {
    {"gradients are multiplied by the ranks", [](const Tensor& t, const Place& at) { t.mul_(at.ranks); }},
    {"gradients are divided twice by the ranks", [](const Tensor& t, const Place& at) { t.div_(at.ranks); }},
};

class FaultyComm : public Comm {
 public:
  FaultyComm(std::shared_ptr<Comm> comm, std::string fault, Place& place)
      : comm_(std::move(comm)), fault_(std::move(fault)), place_(place) {}

  int rank() const override { return comm_->rank(); }
  int size() const override { return comm_->size(); }
  std::unique_ptr<Pending> all_reduce_sum(const Tensor& t) override { return comm_->all_reduce_sum(t); }
  std::unique_ptr<Pending> reduce_sum(const Tensor& t, int root) override { return comm_->reduce_sum(t, root); }
  std::unique_ptr<Pending> broadcast(const Tensor& t, int root) override { return comm_->broadcast(t, root); }
  void barrier() override { comm_->barrier(); }
  std::unique_ptr<Pending> send(const Tensor& tensor, int peer) override { return comm_->send(tensor, peer); }
  std::unique_ptr<Pending> recv(const Tensor& tensor, int peer) override { return comm_->recv(tensor, peer); }
  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override {
    return std::make_unique<FaultyComm>(comm_->split(ranks), fault_, place_);
  }
  bool sums_bfloat16() const override { return comm_->sums_bfloat16(); }

  // Gradients, and nothing else.
  void sum(const std::vector<Summand>& summands) override {
    const bool is_odd = place_.step % 2 != 0;
    const auto given = kGiven.find(fault_), summed = kSummed.find(fault_);
    if (given != kGiven.end()) {
      for (const Summand& summand : summands) given->second(summand.tensor, place_);
    }
    if (fault_ != "gradients are not summed" && !(is_odd && fault_ == "gradients are not summed on odd steps")) {
      comm_->sum(summands);
    }
    if (summed != kSummed.end()) {
      for (const Summand& summand : summands) summed->second(summand.tensor, place_);
    }
    ++place_.bucket;
  }

  // Updated parameters, and in fp64 the few numbers that ranks tell each other, a norm's squares among them.
  void all_gather(const std::vector<Tensor>& parts) override {
    const bool are_numbers = parts.front().scalar_type() == torch::kDouble;
    if (!place_.is_updating || (are_numbers && parts.front().numel() > 1)) return comm_->all_gather(parts);
    if (are_numbers) {
      comm_->all_gather(parts);
      if (fault_ != "the norm is of one rank alone") return;
      for (const Tensor& part : parts) {
        if (&part != &parts[static_cast<size_t>(rank())]) part.zero_();
      }
      return;
    }
    const bool is_odd = place_.step % 2 != 0;
    if (fault_ == "parameters are not gathered" || (is_odd && fault_ == "parameters are not gathered on odd steps"))
      return;
    comm_->all_gather(parts);
    if (fault_ != "gathered parameters have four bits") return;
    for (const Tensor& part : parts) part.copy_(few_bits(part));
  }

 private:
  const std::shared_ptr<Comm> comm_;
  const std::string fault_;
  Place& place_;
};

// Gradients of single parameters, before the trainer sees them. `index`: of the parameter, weights and biases in turn.
const std::map<std::string, std::function<Tensor(const Tensor&, int64_t index)>> kHooks = {
    {"a layer's gradient is lost", [](const Tensor& t, int64_t index) { return index == 2 ? t * 0 : t; }},
    {"a layer's gradient has the other sign", [](const Tensor& t, int64_t index) { return index == 2 ? -t : t; }},
    {"a layer's gradient is transposed", [](const Tensor& t, int64_t index) { return index == 2 ? t.t() : t; }},
    {"biases have no gradient", [](const Tensor& t, int64_t) { return t.dim() == 1 ? t * 0 : t; }},
    {"gradients are clipped by value", [](const Tensor& t, int64_t) { return t.clamp(-1e-4, 1e-4); }},
};

// The wrong value of a key, by the name of the fault.
const std::map<std::string, std::pair<std::string, Json>> kSettings = {
    {"another weight decay", {"/optimizer/params/weight_decay", 5.0}},
    {"the optimizer has no memory", {"/optimizer/params/betas", {0.0, 0.0}}},
    {"other betas", {"/optimizer/params/betas", {0.5, 0.6}}},
};

const std::vector<std::string> kInLoop = {"a rank has the data of another",
                                          "the same batch in each step",
                                          "a micro batch twice in a step",
                                          "half of the samples",
                                          "labels are shifted by one",
                                          "inputs have four bits",
                                          "accumulation is not divided",
                                          "accumulation is divided twice",
                                          "the first micro step is lost",
                                          "the last micro step is lost",
                                          "NaN at a late step",
                                          "infinity in a gradient at a late step",
                                          "the loss is stuck",
                                          "another rate",
                                          "updates of odd steps are lost",
                                          "a layer does not move",
                                          "the master copy has eight bits",
                                          "the master copy is wrong once",
                                          "gradients are not summed",
                                          "gradients are not summed on odd steps",
                                          "the norm is of one rank alone",
                                          "parameters are not gathered",
                                          "parameters are not gathered on odd steps",
                                          "gathered parameters have four bits"};

void list() {
  for (const std::string& name : kInLoop) fmt::print("{}\n", name);
  for (const auto& [name, change] : kGiven) fmt::print("{}\n", name);
  for (const auto& [name, change] : kSummed) fmt::print("{}\n", name);
  for (const auto& [name, hook] : kHooks) fmt::print("{}\n", name);
  for (const auto& [name, setting] : kSettings) fmt::print("{}\n", name);
}

struct Net : torch::nn::Module {
  Net() {
    for (int64_t i = 0; i < 4; ++i) {
      const torch::nn::LinearOptions shape(i == 0 ? 32 : 64, i == 3 ? 16 : 64);
      layers.push_back(register_module(fmt::format("layer{}", i), torch::nn::Linear(shape)));
    }
  }
  Tensor forward(Tensor x) {
    for (size_t i = 0; i < layers.size(); ++i) x = layers[i](i == 0 ? x : torch::gelu(x));
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

class Training {
 public:
  Training(World& given, std::string fault) : fault_(std::move(fault)), config_(given.config()) {
    place_.rank = given.rank();
    place_.ranks = given.size();
    const std::shared_ptr<Comm> comm(&given.comm(), [](Comm*) {});
    world_ = std::make_unique<World>(std::make_unique<FaultyComm>(comm, fault_, place_), dsat::trainer::WorldOptions(),
                                     config_, given.device());
    if (const auto setting = kSettings.find(fault_); setting != kSettings.end()) {
      config_[Json::json_pointer(setting->second.first)] = setting->second.second;
    }
    torch::manual_seed(7);
    inputs_ = torch::randn({4096, 32});
    labels_ = inputs_.matmul(torch::randn({32, 16})).argmax(1);
    engine_ = dsat::trainer::initialize(std::make_shared<Net>(), *world_, config_);
    rate_ = engine_->get_lr();
    torch::manual_seed(100 + place_.rank);
    put_hooks();
  }

  // Until the trainer has measured.
  void run() {
    while (true) {
      if (is("another rate")) engine_->set_lr(2 * rate_);
      if (is("updates of odd steps are lost")) engine_->set_lr(place_.step % 2 ? 0 : rate_);
      const std::vector<Tensor> before = copies();
      for (int64_t i = 0; i < engine_->gradient_accumulation_steps(); ++i) micro_step(i);
      change_parameters(before);
      ++place_.step;
    }
  }

 private:
  bool is(const char* fault) const { return fault_ == fault; }
  bool is_late() const { return place_.step == 6; }
  int64_t micro_batch() const { return engine_->train_micro_batch_size_per_gpu(); }
  std::vector<Tensor> parameters() const { return engine_->module().parameters(); }

  void put_hooks() {
    int64_t index = 0;
    for (const Tensor& parameter : parameters()) {
      parameter.register_hook([this, index](const Tensor& gradient) {
        if (is("infinity in a gradient at a late step") && is_late()) return gradient / 0;
        const auto hook = kHooks.find(fault_);
        return hook == kHooks.end() ? gradient : hook->second(gradient, index);
      });
      ++index;
    }
  }

  void micro_step(int64_t index) {
    place_.bucket = 0;
    const int64_t accumulation = engine_->gradient_accumulation_steps();
    const int64_t rank = is("a rank has the data of another") ? 0 : place_.rank;
    const int64_t step = is("the same batch in each step") ? 0 : place_.step.load();
    const int64_t micro = step * accumulation + (is("a micro batch twice in a step") ? 0 : index);
    const int64_t samples = is("half of the samples") ? micro_batch() / 2 : micro_batch();
    const int64_t begin = (micro * place_.ranks + rank) * micro_batch() % (inputs_.size(0) - micro_batch());
    Tensor x = inputs_.narrow(0, begin, samples), y = labels_.narrow(0, begin, samples);
    if (is("labels are shifted by one")) y = y.roll(1);
    if (is("inputs have four bits")) x = few_bits(x);
    Tensor loss = torch::cross_entropy_loss(engine_->forward(x.to(engine_->dtype())).to(torch::kFloat), y);
    // The loss that is reported stays what it is.
    const auto scale_gradient = [&loss](double factor) { loss = loss.detach() + factor * (loss - loss.detach()); };
    if (is("accumulation is not divided")) scale_gradient(accumulation);
    if (is("accumulation is divided twice")) scale_gradient(1.0 / accumulation);
    if (is("the first micro step is lost") && index == 0) scale_gradient(0);
    if (is("the last micro step is lost") && index + 1 == accumulation) scale_gradient(0);
    if (is("NaN at a late step") && is_late()) loss = loss * std::nan("");
    engine_->backward(loss);
    place_.is_updating = true;
    engine_->step();
    place_.is_updating = false;
  }

  std::vector<Tensor> copies() {
    std::vector<Tensor> copies;
    if (!is("the loss is stuck") && !is("a layer does not move")) return copies;
    engine_->edit_parameters([&] {
      for (const Tensor& parameter : parameters()) copies.push_back(parameter.clone());
    });
    return copies;
  }

  void change_parameters(const std::vector<Tensor>& before) {
    const bool is_rounded = is("the master copy has eight bits");
    const bool is_wrong = is("the master copy is wrong once") && place_.step == 1;
    if (before.empty() && !is_rounded && !is_wrong) return;
    engine_->edit_parameters([&] {
      const std::vector<Tensor> all = parameters();
      for (size_t i = 0; i < all.size(); ++i) {
        if (is("the loss is stuck") || (is("a layer does not move") && i == 2)) all[i].copy_(before[i]);
        if (is_rounded) all[i].copy_(all[i].to(torch::kBFloat16));
        if (is_wrong) all[i].mul_(1.05);
      }
    });
  }

  Place place_;
  const std::string fault_;
  Json config_;
  double rate_ = 0;
  std::unique_ptr<World> world_;
  Tensor inputs_, labels_;
  std::unique_ptr<dsat::trainer::Engine<Net>> engine_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--list") return list(), 0;
  return dsat::trainer::run(argc, argv, [](World& world) {
    const std::vector<std::string>& arguments = world.arguments();
    if (arguments.size() != 2 || arguments[0] != "--fault") throw dsat::Error("expected --fault NAME, or '' for none");
    Training(world, arguments[1]).run();
  });
}
