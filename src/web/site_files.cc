// Collects, checks and opens the files of a model in a page.
#include "web/site_files.h"

#include <fstream>
#include <utility>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace lattice::web {

SiteFiles::SiteFiles(std::filesystem::path directory) : directory_(std::move(directory)) {
  std::filesystem::create_directories(directory_);
}

void SiteFiles::Append(const std::string& name, std::span<const std::byte> piece) {
  lattice::Check(name.find('/') == std::string::npos, "[web] ", name, " is no name of a file");
  hashes_[name].Update(piece);
  std::ofstream file(directory_ / name, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
  file.flush();
  lattice::Check(file.good(), "[web] there is no room for ", name);
}

void SiteFiles::Check(const std::string& name, const std::string& sha256) {
  const auto found = hashes_.extract(name);
  lattice::Check(!found.empty(), "[web] ", name, " has not arrived");
  const std::string is = found.mapped().Finish();
  lattice::Check(is == sha256, "[web] ", name, " is damaged: its SHA-256 is ", is,
                 ", and the site was made with ", sha256,
                 "; copy the site again, or make it again by ./lattice export-web");
}

server::ServedModel SiteFiles::Open(const std::string& name) {
  server::ServedModel served;
  served.name = name;
  served.model = runtime::Model::Load(directory_);
  served.tokenizer = text::OpenTokenizer(directory_.string());
  runtime::RequireTokenizer(served.model->config(), *served.tokenizer, name);
  served.chat_template = text::LoadChatTemplate(directory_);
  std::filesystem::remove_all(directory_);
  return served;
}

}  // namespace lattice::web
