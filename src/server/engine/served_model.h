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

  // The token that a text without a prompt starts after: the end-of-text token, as in training.
  int32_t FirstToken() const {
    const int32_t eot = tokenizer->special().eot;
    return eot < 0 ? 0 : eot;
  }
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SERVED_MODEL_H_
