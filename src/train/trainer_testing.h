// A test fixture that trains a tiny model on a tiny text.
#ifndef LATTICE_TRAIN_TRAINER_TESTING_H_
#define LATTICE_TRAIN_TRAINER_TESTING_H_

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/random.h"
#include "io/file.h"
#include "io/testing.h"
#include "runs/run_directory.h"
#include "train/trainer.h"

namespace lattice::train {

class TinyTraining : public ::testing::Test {
 protected:
  TinyTraining() {
    std::string text;
    const Random random(1);
    for (uint64_t i = 0; text.size() < 6000; ++i) {
      text += std::array<const char*, 6>{
          "the ", "lattice ", "of ", "slots ", "holds ", "keys\n"}[random.Below(6, i)];
    }
    request_.config.data.train = dir_.Put("text.txt", text).string();
    model::ModelConfig& model = request_.config.model;
    model.layers = 1;
    model.width = 32;
    model::TrainConfig& train = request_.config.train;
    train.steps = 12;
    train.seq_len = 32;
    train.batch_tokens = 128;
    train.micro_batch = 2;
    train.warmup = 2;
    train.log_every = 1;
    train.save_patience = 0;
    train.precision = model::Precision::kFp32;
    request_.silent = true;
  }

  TrainResult Run(const std::string& name, int64_t save_every,
                  std::vector<std::filesystem::path> checkpoints = {}) {
    request_.run = dir_ / name;
    request_.checkpoints = std::move(checkpoints);
    request_.config.train.save_every = save_every < request_.config.train.steps ? save_every : 0;
    return Train(request_);
  }

  static std::string Weights(const std::filesystem::path& checkpoint) {
    return io::ReadFile(checkpoint / "model.safetensors");
  }

  io::TestDir dir_;
  TrainRequest request_;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_TRAINER_TESTING_H_
