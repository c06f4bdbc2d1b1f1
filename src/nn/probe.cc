#include "nn/probe.h"

namespace lattice::nn {
namespace {

thread_local std::vector<MemoryInputs>* current = nullptr;

}  // namespace

ProbeScope::ProbeScope(std::vector<MemoryInputs>& traces) { current = &traces; }
ProbeScope::~ProbeScope() { current = nullptr; }
std::vector<MemoryInputs>* ProbeScope::active() { return current; }

}  // namespace lattice::nn
