// A question of a task as the model sees it.
#ifndef LATTICE_EVAL_ITEM_H_
#define LATTICE_EVAL_ITEM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lattice::eval {

// How likely is the continuation after the context?
struct Request {
  std::string context;
  std::string continuation;  // with its leading space
  std::string choice;        // the answer whose length acc_norm divides by: without the space
};

struct Item {
  int64_t index = 0;  // among the lines of the file that hold something, from 0
  int64_t line = 0;   // from 1
  std::vector<Request> requests;
  int64_t gold = 0;  // the right one
};

// An item that has no result, and why: "FILE:LINE: ...".
struct BadItem {
  int64_t index = 0;
  std::string problem;
};

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_ITEM_H_
