// Files that arrive in pieces become a model; damaged ones become a sentence.
#include "web/site_files.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "io/testing.h"
#include "model/checkpoint.h"
#include "runtime/model_parts.h"
#include "runtime/testing.h"
#include "text/bytes.h"
#include "text/tokenizer.h"

namespace lattice::web {
namespace {

namespace fs = std::filesystem;

// Sends every file of a checkpoint in pieces of `piece` bytes.
void Send(const fs::path& checkpoint, size_t piece, SiteFiles& files, std::string_view spoilt = "") {
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    const std::string name = entry.path().filename(), content = io::ReadFile(entry.path());
    std::string sent = content;
    if (name == spoilt) sent[sent.size() / 2] = static_cast<char>(sent[sent.size() / 2] ^ 1);
    for (size_t at = 0; at < sent.size(); at += piece)
      files.Append(name,
                   std::as_bytes(std::span<const char>(sent).subspan(at, std::min(piece, sent.size() - at))));
    files.Check(name, io::Sha256Hex(content));
  }
}

class SiteFilesTest : public testing::Test {
 protected:
  SiteFilesTest() {
    model::ModelConfig config = runtime::TinyConfig("lattice_dec");
    config.vocab_size = 257;
    model_ = runtime::Model::Untrained(config, 3, runtime::WeightFormat::kInt8);
    runtime::WriteWeights(config, model_->parts().weights, directory_ / model::kWeightsFile);
    directory_.Put(model::kConfigFile, model::ModelToJson(config, "int8"));
    text::SaveTokenizer(text::BytesTokenizer(), directory_.path());
  }

  io::TestDir directory_, arrived_;
  std::shared_ptr<const runtime::Model> model_;
};

TEST_F(SiteFilesTest, ThePiecesBecomeTheModel) {
  SiteFiles files(arrived_ / "model");
  Send(directory_.path(), 1000, files);
  const server::ServedModel served = files.Open("tiny");
  EXPECT_EQ(served.model->hash(), model_->hash());
  EXPECT_EQ(served.model->format(), runtime::WeightFormat::kInt8);
  EXPECT_EQ(served.tokenizer->kind(), "bytes");
  EXPECT_FALSE(fs::exists(arrived_ / "model")) << "their memory is free again";
}

TEST_F(SiteFilesTest, DamagedWeightsAreNamed) {
  SiteFiles files(arrived_ / "model");
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Send(directory_.path(), 1 << 20, files, model::kWeightsFile); }),
                       {"model.safetensors is damaged"}));
}

TEST_F(SiteFilesTest, AFileThatIsMissingIsNamed) {
  SiteFiles files(arrived_ / "model");
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { files.Check("config.json", std::string(64, '0')); }),
                       {"config.json has not arrived"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { files.Append("../config.json", {}); }), {"no name of a file"}));
}

}  // namespace
}  // namespace lattice::web
