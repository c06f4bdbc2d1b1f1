#include "train/gradient_buckets.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <memory>

#include "base/error.h"

namespace lattice::train {
namespace {

// Elements after which a bucket is full: large enough for the network's full rate, small enough that the
// first is on its way early in the backward pass.
constexpr int64_t kFull = int64_t{4} << 20;

class Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientBuckets& buckets, size_t parameter) : buckets_(buckets), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override { buckets_.Ready(parameter_); }

 private:
  GradientBuckets& buckets_;
  size_t parameter_;
};

}  // namespace

GradientBuckets::GradientBuckets(const nn::LanguageModel& model, dist::Group& group, bool partial)
    : group_(group), partial_(partial) {
  const std::vector<nn::Parameter>& parameters = model.parameters();
  slots_.resize(parameters.size());
  for (size_t i = parameters.size(); i-- > 0;) {
    if (buckets_.empty() || buckets_.back().length >= kFull) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    slots_[i] = {&parameters[i], buckets_.size() - 1, bucket.length};
    bucket.slots.push_back(i);
    bucket.length += parameters[i].value.numel();
    torch::autograd::impl::set_post_acc_grad_hooks(parameters[i].value, std::make_unique<Hook>(*this, i));
  }
}

GradientBuckets::~GradientBuckets() {
  for (const Slot& slot : slots_)
    torch::autograd::impl::set_post_acc_grad_hooks(slot.parameter->value, nullptr);
}

void GradientBuckets::Arm() {
  armed_ = true;
  next_ = 0;
  for (Slot& slot : slots_) slot.ready = false;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.slots.size();
}

void GradientBuckets::Put(Slot& slot) {
  Bucket& bucket = buckets_[slot.bucket];
  if (!bucket.memory.defined()) bucket.memory = at::empty({bucket.length}, at::kFloat);
  at::Tensor value = slot.parameter->value;
  at::Tensor place = bucket.memory.narrow(0, slot.begin, value.numel()).view(value.sizes());
  if (value.grad().defined()) {
    place.copy_(value.grad());
    value.mutable_grad() = place;
  } else {
    place.zero_();
    if (partial_) value.mutable_grad() = place;
  }
  slot.ready = true;
  --bucket.missing;
}

void GradientBuckets::Ready(size_t parameter) {
  if (!armed_) return;
  c10::NoGradGuard no_grad;
  Slot& slot = slots_[parameter];
  Check(!slot.ready, "[train] the gradient of ", slot.parameter->info.name,
        " came twice in one backward pass");
  Put(slot);
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) Start(buckets_[next_++]);
}

void GradientBuckets::Start(Bucket& bucket) { bucket.sum = dist::AllReduce(group_, bucket.memory); }

void GradientBuckets::Finish() {
  c10::NoGradGuard no_grad;
  armed_ = false;
  const auto start = std::chrono::steady_clock::now();
  for (; next_ < buckets_.size(); ++next_) {
    for (const size_t slot : buckets_[next_].slots) {
      if (!slots_[slot].ready) Put(slots_[slot]);
    }
    Start(buckets_[next_]);
  }
  for (Bucket& bucket : buckets_) {
    bucket.sum.Wait();
    bucket.memory.reset();  // the gradients hold it now
  }
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace lattice::train
