// One question of a task, as requests to the model.
#ifndef LATTICE_EVAL_ITEM_H_
#define LATTICE_EVAL_ITEM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lattice::eval {

// Asks for the log-likelihood of the continuation after the context.
struct Request {
  std::string context;
  std::string continuation;  // with its leading space
  std::string choice;        // the answer without the space; acc_norm divides by its length
};

struct Item {
  int64_t index = 0;  // among the non-empty lines of the file, from 0
  int64_t line = 0;   // from 1
  std::vector<Request> requests;
  int64_t gold = 0;  // index of the correct request
};

// An item without a result, and the reason: "FILE:LINE: ...".
struct BadItem {
  int64_t index = 0;
  std::string problem;
};

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_ITEM_H_
