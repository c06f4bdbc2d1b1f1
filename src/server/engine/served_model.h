// The model that a server serves.
#ifndef LATTICE_SERVER_ENGINE_SERVED_MODEL_H_
#define LATTICE_SERVER_ENGINE_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace lattice::server {

struct ServedModel {
  std::string name;  // as clients see it
  std::shared_ptr<const runtime::Model> model;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  int64_t created = 0;  // seconds since 1970, when the server started
  std::shared_ptr<const text::ChatTemplate> chat_template = nullptr;  // null: conversations are plain text

  // The token that a text without a prompt starts after, as in training: the end-of-text token, or the one that
  // every text begins with.
  int32_t FirstToken() const {
    const text::SpecialIds& special = tokenizer->special();
    const int32_t first = special.starts_texts ? special.bos : special.eot;
    return first < 0 ? 0 : first;
  }
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SERVED_MODEL_H_
