#include "nn/probe.h"

namespace lattice::nn {
namespace {

thread_local std::vector<MemoryTrace>* current = nullptr;

}  // namespace

ProbeScope::ProbeScope(std::vector<MemoryTrace>& traces) { current = &traces; }
ProbeScope::~ProbeScope() { current = nullptr; }
std::vector<MemoryTrace>* ProbeScope::active() { return current; }

}  // namespace lattice::nn
