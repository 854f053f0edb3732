// An image model on the Trial API: dsat-trial has the loop, the reports, the checkpoints and the end.
#include "dsat/trainer/trial.h"
#include "images.h"

namespace trainer = dsat::trainer;

class ImageTrial : public trainer::Trial {
 public:
  explicit ImageTrial(trainer::TrialContext& context)
      : Trial(context),
        engine_(context.wrap_model_engine(
            trainer::initialize(std::make_shared<images::NetImpl>(context.get_hparam<int64_t>("width")),
                                context.world(), context.get_deepspeed_config()))) {}

  std::shared_ptr<trainer::Loader> build_training_data_loader() override {
    return loader("training_images", engine_->train_micro_batch_size_per_gpu(), /*shuffle=*/true);
  }
  std::shared_ptr<trainer::Loader> build_validation_data_loader() override {
    return loader("validation_images", engine_->train_micro_batch_size_per_gpu(), /*shuffle=*/false);
  }

  trainer::Metrics train_batch(trainer::BatchIterator& data, int64_t, int64_t) override {
    const trainer::Tensors batch = context_.to_device(data.next());
    const torch::Tensor loss = images::loss_of(engine_->forward(batch[0].to(engine_->dtype())), batch[1]);
    engine_->backward(loss);
    engine_->step();
    return {{"loss", loss.detach()}};
  }

  trainer::Metrics evaluate_batch(trainer::BatchIterator& data, int64_t) override {
    const trainer::Tensors batch = context_.to_device(data.next());
    const torch::Tensor logits = engine_->forward(batch[0].to(engine_->dtype()));
    return {{"loss", images::loss_of(logits, batch[1])},
            {"accuracy", logits.argmax(1).eq(batch[1]).to(torch::kFloat).mean()}};
  }

 private:
  std::shared_ptr<trainer::Loader> loader(const char* count, int64_t batch_size, bool shuffle) const {
    const dsat::Json data = context_.get_data_config();
    return std::make_shared<trainer::DataLoader>(
        std::make_shared<images::RandomImages>(data.value(count, int64_t{64}), data.value("image", int64_t{224})),
        batch_size, shuffle);
  }

  std::shared_ptr<trainer::Engine<images::NetImpl>> engine_;
};

DSAT_TRIAL(ImageTrial)
