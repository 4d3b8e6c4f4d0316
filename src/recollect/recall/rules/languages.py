"""What is known of languages: their little words, and the scripts they are written in. Tables; `lexical` uses them."""

DEFAULT = "english"

# Little words by language. What two languages share tells nothing between them and does no harm.
# fmt: off
LITTLE_WORDS = {
    "english": "a an or the of and to in is are was were be been it this that these those with for on at by from as "
               "what when where who which how why has have had not do does did i you he she we they my your his her "
               "our their",
    "german": "der die das und ist nicht mit ein eine einen einer für auf von zu den dem des im wir ich sie es auch "
              "wie wann wo wer hat haben wird werden war sind bei nach über aus noch nur mein meine oder",
    "french": "le la les des est et une un dans pour que qui du au aux avec sur pas nous vous je il elle sont ne par "
              "ce cette mais où quand comment mon ma mes son ses leur été",
    "spanish": "el la los las de y es en un una que por para con no se su del al lo como más pero cuándo dónde qué "
               "quién mi mis sus fue está son hay muy también",
    "portuguese": "o a os as de e é em um uma que por para com não se seu sua do da dos das no na ao como mais mas "
                  "quando onde quem meu minha foi está são há muito também",
    "italian": "il lo la gli le di e è in un una che per con non si suo sua del della dei delle al alla come più ma "
               "quando dove chi mio mia sono stato ha hanno anche nel nella",
    "dutch": "de het een en van is niet met voor op aan te dat die in zijn ook wij ik je hij zij er maar om naar bij "
             "uit wat wanneer waar wie heeft hebben wordt mijn onze",
    "swedish": "och att det en ett är som på för inte med av till den jag vi du han hon de om men var när vad har "
               "hade min mitt mina eller också från",
    "norwegian": "og at det en et er som på for ikke med av til den jeg vi du han hun de om men var når hva har "
                 "hadde min mitt mine eller også fra",
    "danish": "og at det en et er som på for ikke med af til den jeg vi du han hun de om men var hvornår hvad har "
              "havde min mit mine eller også fra",
    "finnish": "ja on ei se että oli ovat mutta kun niin myös joka mitä missä milloin kuka minun minä sinä hän me te "
               "he tai kuin olen",
    "hungarian": "a az és nem hogy is egy van volt ez de meg mint csak vagy ki mi hol mikor hogyan én te ő mert már",
    "romanian": "și în de la cu pe nu este un o că din pentru care mai sau dar când unde cine cum au fost sunt meu "
                "mea ce se al ale",
    "turkish": "ve bir bu için de da ne ile mi mı ben sen o biz çok daha ama gibi var yok nasıl nerede kim olan "
               "değil",
    "catalan": "el la els les de i és en un una que per amb no es del al com més però quan on qui meu meva són també "
               "aquest aquesta",
    "polish": "i w na z nie się jest to do że o jak po za od przez dla czy kiedy gdzie kto mój moja był była są ale "
              "oraz",
    "czech": "a v na je se že s z do o k jak po za od pro kdy kde kdo můj moje byl byla jsou ale nebo jsem",
    "indonesian": "yang dan di itu ini dengan untuk tidak dari pada adalah akan saya kamu dia kami mereka ada apa "
                  "kapan mana siapa bagaimana juga atau ke",
    "lithuanian": "ir yra ne kad su iš į kaip bet ar tai buvo mano kada kur kas už prie apie jis ji mes",
    "estonian": "ja on ei see et oli aga kui ka mis kus millal kes minu mina sina tema meie või oma",
}

# What says nothing in a question, of the language that is taken for any other.
STOP_WORDS = frozenset([
    "a", "an", "the", "of", "to", "in", "on", "for", "and", "or", "is", "are", "was", "were", "be", "been", "do",
    "does", "did", "i", "you", "he", "she", "it", "we", "they", "my", "your", "his", "her", "its", "our", "their",
    "me", "him", "them", "this", "that", "these", "those", "with", "at", "by", "from", "as", "what", "when", "where",
    "who", "which", "how", "why", "has", "have", "had", "not",
])
# Words of asking: who asks to be told about somebody misses neither "tell" nor "about" in what is known of them.
ASKING = frozenset([
    "about", "tell", "know", "knows", "known", "anything", "something", "everything", "remember", "recall", "remind",
    "show", "find", "give", "please", "us", "happen", "happened", "happens",
])
# fmt: on
LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _little in LITTLE_WORDS.items():
    for _word in set(_little.split()):
        LANGUAGES_OF.setdefault(_word, []).append(_language)

# Stemmers by script: the first is that of a text that does not say otherwise by letters of its own.
CYRILLIC, ARABIC = ("russian",), ("arabic", "persian")
NOT_RUSSIAN = frozenset("іїєґўђјљњћџѓќѕ")
NOT_ARABIC = frozenset("پچژگکی")
URDU = frozenset("ٹڈڑےں")
# Each script up to the character where the next begins.
BLOCKS = (
    (0x0250, "latin"),
    (0x0370, ""),
    (0x0400, "greek"),
    (0x0530, "cyrillic"),
    (0x0590, "armenian"),
    (0x0600, ""),
    (0x0700, "arabic"),
    (0x0900, ""),
    (0x0980, "hindi"),
    (0x0B80, ""),
    (0x0C00, "tamil"),
    (0x1E00, ""),
    (0x1F00, "latin"),
    (0x2000, "greek"),
)
