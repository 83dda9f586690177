"""What is looked for in the syntax tree of each language, as tree-sitter queries.

Captures: ``def.<SymbolKind>`` a definition; ``wrap`` what may stand around one (``export``, decorators, ``template``);
``mark`` an attribute or decorator that stands before one; ``note`` a comment; ``call`` a callee; ``invoke`` a Java call;
``macro`` a Rust macro's name; ``import``; ``package``; ``stmt`` where a long chunk may be cut.
"""

from __future__ import annotations

_PYTHON = """
(function_definition) @def.function
(class_definition) @def.class
(module (expression_statement (assignment)) @def.variable)
(decorated_definition) @wrap
(call function: (_) @call)
[(import_statement) (import_from_statement) (future_import_statement)] @import
(comment) @note
[(module (_) @stmt) (block (_) @stmt)]
"""

_JAVASCRIPT_BOTH = """
[(function_declaration) (generator_function_declaration)] @def.function
(class_declaration) @def.class
(method_definition) @def.method
(variable_declarator value: [(arrow_function) (function_expression) (generator_function)]) @def.function
(variable_declarator value: (class)) @def.class
(assignment_expression left: [(member_expression) (identifier)]
  right: [(function_expression) (arrow_function) (generator_function)]) @def.function
(assignment_expression left: [(member_expression) (identifier)] right: (class)) @def.class
(pair value: [(function_expression) (arrow_function)]) @def.method
(export_statement value: [(function_expression) (arrow_function)] @def.function)
(export_statement value: (class) @def.class)
(program [(lexical_declaration (variable_declarator) @def.variable)
  (variable_declaration (variable_declarator) @def.variable)])
(program (export_statement declaration: [(lexical_declaration (variable_declarator) @def.variable)
  (variable_declaration (variable_declarator) @def.variable)]))
[(export_statement) (lexical_declaration) (variable_declaration)] @wrap
(call_expression function: (_) @call)
(new_expression constructor: (_) @call)
(import_statement) @import
(export_statement source: (_)) @import
(variable_declarator value: (call_expression function: (identifier) @_require
  (#eq? @_require "require"))) @import
(comment) @note
[(program (_) @stmt) (statement_block (_) @stmt) (class_body (_) @stmt) (switch_body (_) @stmt)
 (object (_) @stmt) (array (_) @stmt)]
"""

_JSX = """
(jsx_opening_element name: (_) @call)
(jsx_self_closing_element name: (_) @call)
"""

_JAVASCRIPT = (
    _JAVASCRIPT_BOTH
    + _JSX
    + """
(field_definition value: [(arrow_function) (function_expression)]) @def.method
"""
)

_TYPESCRIPT = (
    _JAVASCRIPT_BOTH
    + """
(abstract_class_declaration) @def.class
(interface_declaration) @def.interface
(type_alias_declaration) @def.type
(enum_declaration) @def.enum
[(internal_module) (module)] @def.module
(function_signature) @def.function
[(abstract_method_signature) (method_signature)] @def.method
(public_field_definition value: [(arrow_function) (function_expression)]) @def.method
(ambient_declaration) @wrap
(class_body (decorator) @mark)
[(interface_body (_) @stmt) (enum_body (_) @stmt)]
"""
)

_GO = """
(function_declaration) @def.function
(method_declaration) @def.method
(type_spec) @def.type
(type_alias) @def.type
(method_elem) @def.method
(source_file (const_declaration (const_spec) @def.variable))
(source_file (var_declaration [(var_spec) @def.variable (var_spec_list (var_spec) @def.variable)]))
[(type_declaration) (var_declaration) (const_declaration)] @wrap
(call_expression function: (_) @call)
(import_spec) @import
(package_clause (package_identifier) @package)
(comment) @note
[(source_file (_) @stmt) (statement_list (_) @stmt) (field_declaration_list (_) @stmt)
 (literal_value (_) @stmt) (interface_type (_) @stmt) (const_declaration (_) @stmt)
 (var_spec_list (_) @stmt) (expression_switch_statement (_) @stmt)]
"""

_RUST = """
[(function_item) (function_signature_item)] @def.function
[(struct_item) (union_item)] @def.struct
(enum_item) @def.enum
(trait_item) @def.interface
(impl_item) @def.impl
(mod_item body: (_)) @def.module
(macro_definition) @def.macro
(type_item) @def.type
(source_file [(const_item) (static_item)] @def.variable)
(attribute_item) @mark
(call_expression function: (_) @call)
(macro_invocation macro: (_) @macro)
[(use_declaration) (extern_crate_declaration)] @import
(mod_item !body) @import
[(line_comment) (block_comment)] @note
[(source_file (_) @stmt) (block (_) @stmt) (declaration_list (_) @stmt) (match_block (_) @stmt)
 (field_declaration_list (_) @stmt) (enum_variant_list (_) @stmt)]
"""

_JAVA = """
[(class_declaration) (record_declaration)] @def.class
[(interface_declaration) (annotation_type_declaration)] @def.interface
(enum_declaration) @def.enum
[(method_declaration) (constructor_declaration) (compact_constructor_declaration)
 (annotation_type_element_declaration)] @def.method
(method_invocation) @invoke
(object_creation_expression type: (_) @call)
(import_declaration) @import
(package_declaration (_) @package)
[(line_comment) (block_comment)] @note
[(program (_) @stmt) (block (_) @stmt) (constructor_body (_) @stmt) (class_body (_) @stmt)
 (interface_body (_) @stmt) (enum_body (_) @stmt) (enum_body_declarations (_) @stmt)
 (switch_block (_) @stmt) (array_initializer (_) @stmt)]
"""

_C = """
(function_definition) @def.function
(struct_specifier name: (_) body: (_)) @def.struct
(union_specifier name: (_) body: (_)) @def.struct
(enum_specifier name: (_) body: (_)) @def.enum
(type_definition type: [(struct_specifier !name body: (_)) (union_specifier !name body: (_))]) @def.struct
(type_definition type: (enum_specifier !name body: (_))) @def.enum
(type_definition type: [(primitive_type) (type_identifier) (sized_type_specifier)]) @def.type
(preproc_function_def) @def.macro
(translation_unit (preproc_def) @def.variable)
(translation_unit (declaration declarator: (init_declarator)) @def.variable)
(call_expression function: (_) @call)
(preproc_include) @import
(comment) @note
[(translation_unit (_) @stmt) (compound_statement (_) @stmt) (case_statement (_) @stmt)
 (field_declaration_list (_) @stmt) (enumerator_list (_) @stmt) (initializer_list (_) @stmt)
 (declaration_list (_) @stmt) (preproc_if (_) @stmt) (preproc_ifdef (_) @stmt)]
"""

_CPP = (
    _C
    + """
(class_specifier name: (_) body: (_)) @def.class
(namespace_definition) @def.module
(template_declaration) @wrap
(alias_declaration) @def.type
(new_expression type: (_) @call)
"""
)

QUERIES: dict[str, str] = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT + _JSX,
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "c": _C,
    "cpp": _CPP,
}
