#include "dist/board.h"

#include <utility>

namespace lattice::dist {
namespace {

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

Board::Board(c10::intrusive_ptr<c10d::Store> store, std::string prefix)
    : store_(std::move(store)), prefix_(std::move(prefix)) {}

std::vector<std::string> Board::Full(const std::vector<std::string>& keys) const {
  std::vector<std::string> full;
  for (const std::string& key : keys) full.push_back(prefix_ + key);
  return full;
}

void Board::Post(const std::string& key, const std::string& value) {
  store_->set(prefix_ + key, Bytes(value));
}

std::string Board::PostFirst(const std::string& key, const std::string& value) {
  return Text(store_->compareSet(prefix_ + key, Bytes(""), Bytes(value)));
}

bool Board::Has(const std::vector<std::string>& keys) const { return store_->check(Full(keys)); }

std::vector<std::string> Board::Read(const std::vector<std::string>& keys) const {
  std::vector<std::string> values;
  for (const auto& bytes : store_->multiGet(Full(keys))) values.push_back(Text(bytes));
  return values;
}

int64_t Board::Add(const std::string& key, int64_t amount) { return store_->add(prefix_ + key, amount); }

void Board::Remove(const std::string& key) { store_->deleteKey(prefix_ + key); }

}  // namespace lattice::dist
