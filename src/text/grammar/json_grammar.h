// Grammars of JSON texts: any object, or what a JSON schema describes.
#ifndef LATTICE_TEXT_GRAMMAR_JSON_GRAMMAR_H_
#define LATTICE_TEXT_GRAMMAR_JSON_GRAMMAR_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "text/grammar/grammar.h"

namespace lattice::text::grammar {

// The texts are compact JSON, with or without a space behind commas and colons.
std::shared_ptr<const Grammar> JsonObjectGrammar();

// Supported: type (also a list), properties, required, additionalProperties (false; otherwise none are made all
// the same), items, minItems, maxItems, minLength, maxLength, enum, const, anyOf, $ref to #, #/$defs/NAME and
// #/definitions/NAME; title, description, default, examples and the like change nothing. Properties come in the
// order of the schema's object. Throws Error that names the place and the keyword that is not supported or not understood.
std::shared_ptr<const Grammar> JsonSchemaGrammar(const nlohmann::ordered_json& schema);

}  // namespace lattice::text::grammar

#endif  // LATTICE_TEXT_GRAMMAR_JSON_GRAMMAR_H_
